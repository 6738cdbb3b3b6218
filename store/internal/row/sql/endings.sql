-- The entries with the events that ended leases, $1 the keys of the leases, $2 their locks. The newest comes last.
select k.key, k.id, b.at, e.entry
from unnest($1::bigint[], $2::text[]) as n (key, name)
join paddock.event_refs k on k.key = n.key
join paddock.event_batches b on b.id = k.id / 4096
cross join unnest(b.entries) as e (entry)
where e.entry ->> 0 = n.name
order by k.id
