delete from paddock.waiters w
using unnest($1::text[], $2::bigint[]) as n (name, place)
where w.name = n.name and w.place = n.place
