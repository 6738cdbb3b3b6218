-- One lock with a lease on its anchor, as in save_anchors.sql. Unnesting twenty columns takes longer than writing one
-- row.
update paddock.locks l
set revision    = $2::bigint,
    last_token  = $3::bigint,
    last_end    = $4::smallint,
    capacity    = $5::integer,
    queued      = $6::integer,
    sitting     = 0,
    changed_at  = $7::timestamptz,
    lease_id    = $8::uuid,
    mode        = $9::smallint,
    holder      = $10::text,
    token       = $11::bigint,
    ttl_ms      = $12::bigint,
    grace_ms    = $13::bigint,
    max_hold_ms = $14::bigint,
    acquired_at = $15::timestamptz,
    expires_at  = $16::timestamptz,
    metadata    = $17::text::json,
    place       = $18::bigint,
    attachment  = $19::bigint,
    claim_by    = $20::timestamptz
where l.ctid = $1::tid
returning $1::tid as was, l.ctid
