-- Those of the given waiting calls that need not wait any more: their place is gone or has another call, they were
-- granted the lock, or the lock is free.
select n.attachment
from unnest($1::text[], $2::bigint[], $3::bigint[]) as n (name, place, attachment)
where not exists (
        select from paddock.parts w
        where w.name = n.name and w.slot = 0 and w.place = n.place and w.attachment = n.attachment and not w.unclaimed)
   or exists (
        select from paddock.records r
        where r.name = n.name and r.lease_id is null
          and not exists (select from paddock.parts l where l.name = r.name and l.slot >= 1))
