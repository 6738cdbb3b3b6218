-- The sessions of the leases and waiters whose names are as in sql/clear.sql that have ended, and their refs.
select coalesce(json_agg(s), '[]'), coalesce(array_agg(s.ref), '{}')
from paddock.sessions s
where ended <> 0 and ref in (
    select r.session
    from unnest($1::text[], $2::text[]) as n (first, beyond)
    cross join lateral (
        select session from paddock.records where name >= n.first and name < n.beyond
        union all
        select session from paddock.parts where name >= n.first and name < n.beyond
    ) r
)
