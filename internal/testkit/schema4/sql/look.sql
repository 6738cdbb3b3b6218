-- Reads anchors without locking them, except those with slots or waiters. As in lock_anchors.sql the lateral
-- sub-select forces one index look-up a name.
select l.*
from unnest($1::text[]) as n (name)
cross join lateral (
    select name, slot, revision, last_token, last_end, capacity, queued, sitting, changed_at,
           lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms, acquired_at, expires_at, metadata, place, attachment, claim_by,
           ctid, xmin
    from paddock.locks
    where locks.name = n.name and slot = 0 and queued = 0 and sitting = 0
    offset 0
) l
