-- As swap.sql, for locks that change more than an anchor and an event: $9 are the events, $10 the leases that must
-- not have ended, $11 and $12 the places that are free again, and from $13 on the new places. Only data of locks that
-- were written is changed.
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
      and (select 1 from paddock.events where lease_ref = any ($10::bigint[]) limit 1) is null
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
    returning n.ord, n.name, n.drawn, l.ctid as at, l.xmin as version, mark.now, 1 / (clock_timestamp() < n.until)::integer
), told as (
    insert into paddock.events (id, at, name, slot, revision, kind, token, holder, mode, reason, lease_ref, place)
    select nextval('paddock.event_ids'), e.changed_at, e.name, 0, e.revision, e.kind, case when e.draws then w.drawn else e.last_token end,
           e.event_holder, e.event_mode, e.reason, e.lease_ref, e.event_place
    from written w
    join unnest($9::paddock.swap[]) e on e.name = w.name
), freed as (
    delete from paddock.waiters q
    using written w, unnest($11::text[], $12::bigint[]) n (name, place)
    where n.name = w.name and q.name = n.name and q.place = n.place
), taken as (
    insert into paddock.waiters (name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata, joined_at,
                                 attachment, replica, until, alive_until, kept_until, offered)
    select n.name, n.place, n.lease_id, n.mode, n.capacity, n.holder, n.ttl_ms, n.grace_ms, n.max_hold_ms, n.metadata::json, n.joined_at,
           n.attachment, n.replica, n.until, n.alive_until, n.kept_until, n.offered
    from written w
    join unnest($13::text[], $14::bigint[], $15::uuid[], $16::smallint[], $17::integer[], $18::text[], $19::bigint[], $20::bigint[], $21::bigint[],
                $22::text[], $23::timestamptz[], $24::bigint[], $25::bigint[], $26::timestamptz[], $27::timestamptz[], $28::timestamptz[], $29::boolean[])
        as n (name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata, joined_at,
              attachment, replica, until, alive_until, kept_until, offered) on n.name = w.name
    on conflict (name, place) do update
    set attachment  = excluded.attachment,
        replica     = excluded.replica,
        until       = excluded.until,
        alive_until = excluded.alive_until,
        kept_until  = excluded.kept_until,
        offered     = excluded.offered
)
select ord, at, version, drawn, now from written
