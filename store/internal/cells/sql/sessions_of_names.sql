-- The sessions of the leases and waiters whose names are as in sql/clear.sql.
select r.session
from unnest($1::text[], $2::text[]) as n (first, beyond)
cross join lateral (
    select session from paddock.records where name >= n.first and name < n.beyond
    union all
    select session from paddock.parts where name >= n.first and name < n.beyond
) r
