-- One lock without a lease on its anchor, as in save_bare_anchors.sql.
update paddock.locks l
set revision    = $2::bigint,
    last_token  = $3::bigint,
    last_end    = $4::smallint,
    capacity    = $5::integer,
    queued      = $6::integer,
    sitting     = $7::integer,
    changed_at  = $8::timestamptz,
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
where l.ctid = $1::tid
returning $1::tid as was, l.ctid
