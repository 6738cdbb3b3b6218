-- Writes locks with a lease on their anchor. This transaction has locked the anchors.
update paddock.locks l
set revision    = n.revision,
    last_token  = n.last_token,
    last_end    = n.last_end,
    capacity    = n.capacity,
    queued      = n.queued,
    sitting     = 0,
    changed_at  = n.changed_at,
    lease_id    = n.lease_id,
    mode        = n.mode,
    holder      = n.holder,
    token       = n.token,
    ttl_ms      = n.ttl_ms,
    grace_ms    = n.grace_ms,
    max_hold_ms = n.max_hold_ms,
    acquired_at = n.acquired_at,
    expires_at  = n.expires_at,
    metadata    = n.metadata::json,
    place       = n.place,
    attachment  = n.attachment,
    claim_by    = n.claim_by
from unnest($1::tid[], $2::bigint[], $3::bigint[], $4::smallint[], $5::integer[], $6::integer[], $7::timestamptz[],
            $8::uuid[], $9::smallint[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
            $15::timestamptz[], $16::timestamptz[], $17::text[], $18::bigint[], $19::bigint[], $20::timestamptz[])
    as n (at, revision, last_token, last_end, capacity, queued, changed_at,
          lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms,
          acquired_at, expires_at, metadata, place, attachment, claim_by)
where l.ctid = n.at
returning n.at as was, l.ctid
