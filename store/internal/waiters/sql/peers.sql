-- The number of calls that wait on live replicas other than $1, and whether any of these has subscribers of events.
select coalesce(sum(waiting), 0)::bigint, coalesce(bool_or(watching), false)
from paddock.replicas
where id <> $1 and alive_until > clock_timestamp()
