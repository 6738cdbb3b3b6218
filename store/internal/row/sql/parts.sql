-- The parts of locks whose records still have the xmin $2, the waiters of a lock before its leases. All of it is of
-- one moment, so parts of another row cannot be mixed in. A replica is alive until the instant in its own row, or in
-- that of its waiter.
select {{.PartOfRecord}}, r.alive_until
from unnest($1::text[], $2::xid[]) as n (name, xmin)
cross join lateral (
    select from paddock.records
    where records.name = n.name and records.xmin = n.xmin
    offset 0
) a
join paddock.parts p on p.name = n.name
left join paddock.replicas r on r.id = p.replica
order by p.name, p.slot, p.place
