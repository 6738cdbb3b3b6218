-- Anchors as they are; those beside which there is more are left out. As in lock_anchors.sql
-- nothing but one look-up a name can come of the lateral sub-select.
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
