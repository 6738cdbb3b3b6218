delete from paddock.locks l
using unnest($1::text[], $2::integer[]) as n (name, slot)
where l.name = n.name and l.slot = n.slot and l.slot > 0
