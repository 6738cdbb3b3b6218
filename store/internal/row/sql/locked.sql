-- The names whose rows other sessions have locked. It holds no lock after the statement.
with free as (
    select name
    from paddock.records
    where name = any ($1::text[])
    for update skip locked
)
select r.name
from paddock.records r
where r.name = any ($1::text[])
  and not exists (select from free where free.name = r.name)
