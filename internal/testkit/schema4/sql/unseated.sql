-- The calls waiting on this replica that need not wait any more: their place is gone, they were granted the lock, or
-- the lock is free.
select n.attachment
from unnest($1::text[], $2::bigint[], $3::bigint[]) as n (name, place, attachment)
where not exists (
        select from paddock.waiters w
        where w.name = n.name and w.place = n.place and w.attachment = n.attachment and not w.offered)
   or exists (
        select from paddock.locks l
        where l.name = n.name and l.slot = 0 and l.lease_id is null and l.sitting = 0)
