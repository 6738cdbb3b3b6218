-- A chunk of anchors in name order: whether each has a lease, in how many milliseconds that lease is over, whether
-- there are other leases or waiters, and whether the lock has been free for longer than $3.
select name, lease_id is not null,
       coalesce(extract(epoch from coalesce(claim_by, expires_at + grace_ms * interval '1 millisecond') - clock_timestamp()) * 1000,
                0)::double precision,
       queued > 0 or sitting > 0,
       lease_id is null and queued = 0 and sitting = 0 and changed_at < clock_timestamp() - $3::interval
from paddock.locks
where name > $1 and slot = 0
order by name
limit $2
