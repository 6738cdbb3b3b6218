-- How many calls wait on other live replicas, and whether any of them has subscribers of events.
select coalesce(sum(waiting), 0)::bigint, coalesce(bool_or(watching), false)
from paddock.replicas
where id <> $1 and alive_until > clock_timestamp()
