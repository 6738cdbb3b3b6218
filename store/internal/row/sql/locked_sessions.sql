-- The sessions $2, and those of the leases and waiters of the locks $1, whose rows other transactions have locked; and
-- the locks that have them, empty for none. It holds no lock after the statement.
with mine as (
    select ref, '' as name from unnest($2::bigint[]) as r (ref)
    union
    select session, name from paddock.records where name = any ($1::text[]) and session is not null
    union
    select session, name from paddock.parts where name = any ($1::text[]) and session is not null
), free as (
    select ref
    from paddock.sessions
    where ref in (select ref from mine)
    for update skip locked
)
select m.ref, m.name
from mine m
join paddock.sessions s on s.ref = m.ref
where not exists (select from free where free.ref = m.ref)
