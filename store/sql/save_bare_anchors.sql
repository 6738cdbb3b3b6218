-- Writes locks without a lease on their anchor: free ones, and those with leases in slots. This transaction has
-- locked the anchors.
update paddock.locks l
set revision    = n.revision,
    last_token  = n.last_token,
    last_end    = n.last_end,
    capacity    = n.capacity,
    queued      = n.queued,
    sitting     = n.sitting,
    changed_at  = n.changed_at,
    lease_id    = null,
    mode        = null,
    holder      = null,
    token       = null,
    ttl_ms      = null,
    grace_ms    = null,
    max_hold_ms = null,
    acquired_at = null,
    expires_at  = null,
    metadata    = null,
    place       = 0,
    attachment  = 0,
    claim_by    = null
from unnest($1::tid[], $2::bigint[], $3::bigint[], $4::smallint[], $5::integer[], $6::integer[], $7::integer[], $8::timestamptz[])
    as n (at, revision, last_token, last_end, capacity, queued, sitting, changed_at)
where l.ctid = n.at
returning n.at as was, l.ctid
