-- The sessions of the leases and waiters whose names are as in sql/clear.sql that have ended, and their refs.
select coalesce(json_agg(s), '[]'), coalesce(array_agg(s.ref), '{}')
from paddock.sessions s
where ended <> 0 and ref in (
{{.OfNames}}
)
