-- The leases in slots of locks whose anchors are locked.
select name, slot, revision, last_token, last_end, capacity, queued, sitting, changed_at,
       lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms, acquired_at, expires_at, metadata, place, attachment, claim_by
from paddock.locks
where name = any ($1::text[]) and slot > 0
order by name, slot
