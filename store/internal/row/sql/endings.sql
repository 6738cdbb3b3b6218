-- The entries with the events that ended leases, $1 the keys of the leases, $2 their locks. The newest comes last.
-- offset 0 is as in swap.sql.
select k.key, k.id, b.at, e.entry
from unnest($1::bigint[], $2::text[]) as n (key, name)
cross join lateral (select key, id from paddock.event_refs where key = n.key offset 0) k
cross join lateral (select at, entries from paddock.event_batches where id = k.id / 4096 offset 0) b
cross join unnest(b.entries) as e (entry)
where e.entry ->> 0 = n.name
order by k.id
