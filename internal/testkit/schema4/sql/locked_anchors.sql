-- The names whose rows other sessions have locked. It holds no lock after the statement.
with free as (
    select name
    from paddock.locks
    where name = any ($1::text[]) and slot = 0
    for update skip locked
)
select l.name
from paddock.locks l
where l.name = any ($1::text[]) and l.slot = 0
  and not exists (select from free where free.name = l.name)
