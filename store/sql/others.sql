-- How many wait with the other replicas that live, and whether anybody follows
-- events there.
select coalesce(sum(waiting), 0)::bigint, coalesce(bool_or(watching), false)
from paddock.replicas
where id <> $1 and alive_until > clock_timestamp()
