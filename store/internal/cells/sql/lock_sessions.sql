-- Locks the sessions of the leases and waiters whose names are as in sql/clear.sql, in the order of refs, for heartbeats, too.
select ref
from paddock.sessions
where ref in (
{{.OfNames}}
)
order by ref
for no key update
