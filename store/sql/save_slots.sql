insert into paddock.locks as l (name, slot, lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms,
                                acquired_at, expires_at, metadata, place, attachment, claim_by)
select name, slot, lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms,
       acquired_at, expires_at, metadata::json, place, attachment, claim_by
from unnest($1::text[], $2::integer[], $3::uuid[], $4::smallint[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::timestamptz[], $11::timestamptz[], $12::text[], $13::bigint[], $14::bigint[], $15::timestamptz[])
    as n (name, slot, lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms,
          acquired_at, expires_at, metadata, place, attachment, claim_by)
on conflict (name, slot) do update
set lease_id    = excluded.lease_id,
    mode        = excluded.mode,
    holder      = excluded.holder,
    token       = excluded.token,
    ttl_ms      = excluded.ttl_ms,
    grace_ms    = excluded.grace_ms,
    max_hold_ms = excluded.max_hold_ms,
    acquired_at = excluded.acquired_at,
    expires_at  = excluded.expires_at,
    metadata    = excluded.metadata,
    place       = excluded.place,
    attachment  = excluded.attachment,
    claim_by    = excluded.claim_by
