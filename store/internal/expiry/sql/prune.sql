-- Deletes those of the locks $1 that are still free, not closed, and have been so for longer than $3. This is safe because all
-- names share one sequence of tokens. $2 are the locks' keys in paddock.event_refs, which keeps an id in the batch
-- of the newest event, if that is still there, so that the lock's history is found.
with idle as (
    select r.name, n.key
    from unnest($1::text[], $2::bigint[]) as n (name, key) join paddock.records r on r.name = n.name
    where r.lease_id is null and r.parts = 0 and r.changed_at < clock_timestamp() - $3::interval
      and coalesce(paddock.instant(r.rest, 'closed_until') < clock_timestamp(), true)
    order by r.name
    for update of r skip locked
), pruned as (
    delete from paddock.records r using idle where r.name = idle.name
    returning idle.key, r.last_event
)
insert into paddock.event_refs (key, id)
select p.key, p.last_event * 4096 + 4095
from pruned p
where exists (select from paddock.event_batches b where b.id = p.last_event)
on conflict do nothing
