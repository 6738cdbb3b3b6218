-- Creates a row to lock for each new name, in name order. If two replicas create the same row at once, the second
-- waits here and then finds the row of the first.
insert into paddock.locks (name)
select n.name
from unnest($1::text[]) with ordinality as n (name, place)
where not exists (select from paddock.locks l where l.name = n.name and l.slot = 0)
order by n.place
on conflict do nothing
