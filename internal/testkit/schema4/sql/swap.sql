-- Commits decisions on cached locks, in one statement that is its own transaction (compare and swap). Each lock is
-- written if its anchor has the cached xmin; the written ones are returned. A row that changed while the statement
-- waited has another xmin and is left alone. A row that was only locked is written, unless the wait was so long that
-- the decision does not hold any more; then a division by zero fails the statement.
--
-- Tokens are drawn before the rows are locked. If another token had been granted for the lock since it was cached,
-- its anchor would have another xmin. The mark, an advisory lock as in draw.sql, is set before the event ids are
-- drawn, which happens in the order in which rows were written.
with mark as materialized (
    select clock_timestamp() as now
    from (
        select pg_advisory_xact_lock_shared($8::bigint | case when is_called then last_value else 0 end)
        from paddock.event_ids
        offset 0
    ) held
    where clock_timestamp() between $2::timestamptz and $3::timestamptz
      and pg_postmaster_start_time() = $7::timestamptz
      and (select epoch = $4::bigint and closed_until is not distinct from $5::timestamptz and longest_ms >= $6::bigint
              and (not quorum or current_setting('synchronous_standby_names') <> '')
           from paddock.epochs order by epoch desc limit 1)
), written as (
    update paddock.locks l
    set revision    = n.revision,
        last_token  = n.drawn,
        last_end    = n.last_end,
        queued      = n.queued,
        changed_at  = n.changed_at,
        lease_id    = n.lease_id,
        mode        = n.mode,
        holder      = n.holder,
        token       = case when n.lease_id is not null then n.drawn end,
        ttl_ms      = n.ttl_ms,
        grace_ms    = n.grace_ms,
        max_hold_ms = n.max_hold_ms,
        acquired_at = n.acquired_at,
        expires_at  = n.expires_at,
        metadata    = n.metadata::json,
        place       = n.place,
        attachment  = n.attachment
    from mark
    cross join (
        select s.*, case when s.draws then nextval('paddock.fencing_tokens') else s.last_token end as drawn
        from unnest($1::paddock.swap[]) s
        offset 0
    ) n
    where l.ctid = n.at and l.xmin = n.version and l.name = n.name
      and mark.now < n.until
      and (select 1 from paddock.events e where e.lease_ref = n.unused limit 1) is null
    returning n.ord, n.name, n.changed_at, n.revision, n.drawn, n.kind, n.event_mode, n.event_holder, n.event_place, n.reason, n.lease_ref,
              l.ctid as at, l.xmin as version, mark.now, 1 / (clock_timestamp() < n.until)::integer
), told as (
    insert into paddock.events (id, at, name, slot, revision, kind, token, holder, mode, reason, lease_ref, place)
    select nextval('paddock.event_ids'), changed_at, name, 0, revision, kind, drawn, event_holder, event_mode, reason, lease_ref, event_place
    from written
    where kind is not null
)
select ord, at, version, drawn, now from written
