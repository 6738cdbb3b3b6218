update paddock.locks l
set revision    = n.revision,
    last_token  = n.last_token,
    last_end    = n.last_end,
    capacity    = n.capacity,
    queued      = n.queued,
    sitting     = n.sitting,
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
from unnest($1::text[], $2::bigint[], $3::bigint[], $4::smallint[], $5::integer[], $6::integer[], $7::integer[], $8::timestamptz[],
            $9::uuid[], $10::smallint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::timestamptz[], $17::timestamptz[], $18::text[], $19::bigint[], $20::bigint[], $21::timestamptz[])
    as n (name, revision, last_token, last_end, capacity, queued, sitting, changed_at,
          lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms,
          acquired_at, expires_at, metadata, place, attachment, claim_by)
where l.name = n.name and l.slot = 0
