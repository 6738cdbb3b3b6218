-- sql/swap.sql as PostgreSQL gets it, without its comment, and with long lines broken. Made by go test -update.

-- One change with events, such as a release.
with now as materialized (
    select clock_timestamp() as at, nextval('paddock.event_batch_ids') as batch
    from (
        select pg_advisory_xact_lock_shared($7::bigint | case when is_called then last_value else 0 end)
        from paddock.event_batch_ids
        offset 0
    ) marked
    where clock_timestamp() between $1::timestamptz and $2::timestamptz
      and pg_postmaster_start_time() = $3::timestamptz
      and (select epoch = $4::bigint and closed_until is not distinct from $5::timestamptz and longest_ms >= $6::bigint
              and policy = $9::bigint
              and (not quorum or current_setting('synchronous_standby_names') <> '')
           from paddock.epochs order by epoch desc limit 1)
), written as (
    update paddock.records r
    set token = n.token + case when n.token < 0 then (now.batch + 1) * 256 else 0 end, revision = n.revision,
        last_end = n.last_end, changed_at = n.changed_at, parts = n.parts, lease_id = n.lease_id, mode = n.mode,
        holder = n.holder, acquired_at = n.acquired_at, expires_at = n.expires_at, ttl_ms = n.ttl_ms, rest = n.rest,
        session = n.session,
        last_event = case when n.has_events then now.batch else r.last_event end
    from now
    cross join (select $10::tid as tid, $11::xid as xmin, $12::timestamptz as until, $13::boolean as has_events,
        $14::text as name, $15::bigint as token, $16::bigint as revision, $17::smallint as last_end,
        $18::timestamptz as changed_at, $19::integer as parts, $20::uuid as lease_id, $21::smallint as mode,
        $22::text as holder, $23::timestamptz as acquired_at, $24::timestamptz as expires_at, $25::bigint as ttl_ms,
        $26::json as rest, $27::bigint as session, $8::integer as ord) n
    where r.name = n.name and r.ctid is not distinct from n.tid and r.xmin = n.xmin
      and now.at < n.until
    returning n.ord, r.ctid as tid, r.xmin as xmin, now.at as now,
        case when clock_timestamp() >= n.until then paddock.decided_too_late() end,
              now.batch
), done as not materialized (
    select batch
    from written
), logged as (
    insert into paddock.event_batches (id, at, entries)
    select done.batch, $1, array[e.entry]
    from done, (select $28::integer as ord, $29::json as entry) e
), refs as (
    insert into paddock.event_refs (key, id)
    select k.key, done.batch * 4096 + k.number
    from done, (select unnest($30::integer[]) as ord, unnest($31::bigint[]) as key, unnest($32::integer[]) as number) k
)
select ord, tid, xmin, now, batch
from written;

-- Everything: several locks in a session, with queues and under new lease_ids, while other sessions lose leases.
with now as materialized (
    select clock_timestamp() as at, nextval('paddock.event_batch_ids') as batch
    from (
        select pg_advisory_xact_lock_shared($7::bigint | case when is_called then last_value else 0 end)
        from paddock.event_batch_ids
        offset 0
    ) marked
    where clock_timestamp() between $1::timestamptz and $2::timestamptz
      and pg_postmaster_start_time() = $3::timestamptz
      and (select epoch = $4::bigint and closed_until is not distinct from $5::timestamptz and longest_ms >= $6::bigint
              and policy = $9::bigint
              and (not quorum or current_setting('synchronous_standby_names') <> '')
           from paddock.epochs order by epoch desc limit 1)
), ended as materialized (
    select u.ord
    from (select unnest($10::integer[]) as ord, unnest($11::bigint[]) as key) u
    where exists (select from paddock.event_refs k where k.key = u.key offset 0)
), written as (
    update paddock.records r
    set token = n.token + case when n.token < 0 then (now.batch + 1) * 256 else 0 end, revision = n.revision,
        last_end = n.last_end, changed_at = n.changed_at, parts = n.parts, lease_id = n.lease_id, mode = n.mode,
        holder = n.holder, acquired_at = n.acquired_at, expires_at = n.expires_at, ttl_ms = n.ttl_ms, rest = n.rest,
        session = n.session,
        last_event = case when n.has_events then now.batch else r.last_event end
    from now
    cross join (select unnest($12::tid[]) as tid, unnest($13::xid[]) as xmin, unnest($14::timestamptz[]) as until,
        unnest($15::boolean[]) as has_events, unnest($16::text[]) as name, unnest($17::bigint[]) as token,
        unnest($18::bigint[]) as revision, unnest($19::smallint[]) as last_end,
        unnest($20::timestamptz[]) as changed_at, unnest($21::integer[]) as parts, unnest($22::uuid[]) as lease_id,
        unnest($23::smallint[]) as mode, unnest($24::text[]) as holder, unnest($25::timestamptz[]) as acquired_at,
        unnest($26::timestamptz[]) as expires_at, unnest($27::bigint[]) as ttl_ms, unnest($28::json[]) as rest,
        unnest($29::bigint[]) as session, generate_series(1, $8::integer) as ord) n
    where r.name = n.name and r.ctid is not distinct from n.tid and r.xmin = n.xmin
      and now.at < n.until and n.ord <> all (array(select ord from ended))
    returning n.ord, r.ctid as tid, r.xmin as xmin, now.at as now,
        case when clock_timestamp() >= n.until then paddock.decided_too_late() end,
              now.batch
), done as materialized (
    select array_agg(ord) as ords, count(*) = $8::integer as whole, min(batch) as batch
    from written
), logged as (
    insert into paddock.event_batches (id, at, entries)
    select done.batch, $1, e.entries
    from done
    cross join lateral (
        select array(select entry from (select unnest($50::integer[]) as ord,
            unnest($51::json[]) as entry) e where done.whole or ord = any (done.ords)) as entries
    ) e
    where cardinality(e.entries) > 0
), refs as (
    insert into paddock.event_refs (key, id)
    select k.key, done.batch * 4096 + k.number
    from done, (select unnest($52::integer[]) as ord, unnest($53::bigint[]) as key, unnest($54::integer[]) as number) k
    where done.whole or k.ord = any (done.ords)
), relied as materialized (
    select unnest($55::bigint[]) as ref
), touched as materialized (
    select ref, count(*) > count(ord) as relied_on, count(ord) as losses
    from (
        select ref, null::integer as ord
        from relied
        where (select count(*) from written) > 0
        union all
        select k.ref, k.ord
        from done, (select unnest($56::integer[]) as ord, unnest($57::bigint[]) as ref) k
        where done.whole or k.ord = any (done.ords)
    ) each
    group by ref
    order by ref
), alive as materialized (
    select t.ref, t.relied_on, t.losses
    from touched t
    cross join lateral (
        select
        from (select from paddock.sessions where ref = t.ref and ended = 0 and t.losses = 0 for key share) shared
        union all
        select
        from (select from paddock.sessions where ref = t.ref and ended = 0 and t.losses > 0 for no key update) own
    ) locked
), counted as (
    update paddock.sessions s
    set revoked_leases = s.revoked_leases + alive.losses
    from alive
    where s.ref = any (array[alive.ref]) and alive.losses > 0
), dropped as (
    delete from paddock.parts p
    using done, (select unnest($30::integer[]) as ord, unnest($31::text[]) as name, unnest($32::integer[]) as slot,
        unnest($33::bigint[]) as place) d
    where (done.whole or d.ord = any (done.ords)) and p.name = d.name and p.slot = d.slot and p.place = d.place
), saved as (
    insert into paddock.parts (name, slot, place, unclaimed, token, attachment, replica, lease_id, mode, holder,
        acquired_at, expires_at, ttl_ms, rest, session)
    select s.name, s.slot, s.place, s.unclaimed,
        s.token + case when s.token < 0 then (done.batch + 1) * 256 else 0 end, s.attachment, s.replica, s.lease_id,
        s.mode, s.holder, s.acquired_at, s.expires_at, s.ttl_ms, s.rest, s.session
    from done, (select unnest($34::integer[]) as ord, unnest($35::text[]) as name, unnest($36::integer[]) as slot,
        unnest($37::bigint[]) as place, unnest($38::boolean[]) as unclaimed, unnest($39::bigint[]) as token,
        unnest($40::bigint[]) as attachment, unnest($41::bigint[]) as replica, unnest($42::uuid[]) as lease_id,
        unnest($43::smallint[]) as mode, unnest($44::text[]) as holder, unnest($45::timestamptz[]) as acquired_at,
        unnest($46::timestamptz[]) as expires_at, unnest($47::bigint[]) as ttl_ms, unnest($48::json[]) as rest,
        unnest($49::bigint[]) as session) s
    where done.whole or s.ord = any (done.ords)
    on conflict (name, slot, place) do update
    set unclaimed = excluded.unclaimed, token = excluded.token, attachment = excluded.attachment,
        replica = excluded.replica, lease_id = excluded.lease_id, mode = excluded.mode, holder = excluded.holder,
        acquired_at = excluded.acquired_at, expires_at = excluded.expires_at, ttl_ms = excluded.ttl_ms,
        rest = excluded.rest, session = excluded.session
)
select ord, tid, xmin, now, batch
from written
where case when (select count(*) from alive where relied_on) = (select count(distinct ref) from relied) then true else paddock.decided_too_late() end
  and case when (select count(*) from written) = $8::integer then true else paddock.decided_too_late() end;
