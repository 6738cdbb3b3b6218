-- Of the live replicas other than $1: the number of calls that wait on them, whether any has subscribers of events, and
-- their ids.
select coalesce(sum(waiting), 0)::bigint, coalesce(bool_or(watching), false), coalesce(array_agg(id), '{}')
from paddock.replicas
where id <> $1 and alive_until > clock_timestamp()
