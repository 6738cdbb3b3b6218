update paddock.locks l
set revision    = n.revision,
    last_token  = n.last_token,
    last_end    = n.last_end,
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
    metadata    = n.metadata::json
from unnest($1::text[], $2::bigint[], $3::bigint[], $4::smallint[], $5::timestamptz[],
            $6::uuid[], $7::smallint[], $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
            $13::timestamptz[], $14::timestamptz[], $15::text[])
    as n (name, revision, last_token, last_end, changed_at,
          lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms,
          acquired_at, expires_at, metadata)
where l.name = n.name and l.slot = 0
