-- Back to the tables of version 4, with all leases, waiters, tokens and events. Stop the replicas first: this locks the
-- tables, and they cannot work without them.
lock table paddock.records, paddock.parts, paddock.event_batches in access exclusive mode;

drop view paddock.locks;
drop view paddock.waiters;
drop view paddock.events;
drop view paddock.event_ids;
drop function paddock.refuse_old_write, paddock.refuse_old_replica;

create sequence paddock.event_ids as bigint minvalue 1 cache 1 no cycle;
select setval('paddock.event_ids',
              greatest((select last_value from paddock.event_batch_ids), (select max(id) from paddock.event_batches),
                       (select pruned / 4096 from paddock.horizon)) * 4096 + 4095);

create table paddock.locks (
    name         text        not null collate "C",
    slot         integer     not null default 0,
    revision     bigint      not null default 0,
    last_token   bigint      not null default 0,
    last_end     smallint    not null default 0,
    capacity     integer     not null default 0,
    queued       integer     not null default 0,
    changed_at   timestamptz not null default clock_timestamp(),
    lease_id     uuid,
    mode         smallint,
    holder       text,
    token        bigint,
    ttl_ms       bigint,
    grace_ms     bigint,
    max_hold_ms  bigint,
    acquired_at  timestamptz,
    expires_at   timestamptz,
    session_id   uuid,
    metadata     json,
    sitting      integer     not null default 0,
    place        bigint      not null default 0,
    attachment   bigint      not null default 0,
    claim_by     timestamptz,
    primary key (name, slot),
    check ((lease_id is null) = (token is null)),
    check ((lease_id is null) = (expires_at is null))
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
create table paddock.waiters (
    name        text        not null collate "C",
    place       bigint      not null,
    lease_id    uuid        not null,
    mode        smallint    not null,
    capacity    integer     not null,
    holder      text        not null,
    ttl_ms      bigint      not null,
    grace_ms    bigint      not null,
    max_hold_ms bigint      not null,
    metadata    json,
    joined_at   timestamptz not null,
    attachment  bigint      not null,
    replica     bigint      not null,
    until       timestamptz not null,
    alive_until timestamptz not null,
    kept_until  timestamptz not null,
    offered     boolean     not null default false,
    primary key (name, place)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
create table paddock.events (
    id         bigint      primary key,
    at         timestamptz not null,
    name       text        not null collate "C",
    slot       integer     not null default 0,
    revision   bigint      not null,
    kind       smallint    not null,
    token      bigint      not null default 0,
    holder     text        not null default '',
    mode       smallint    not null default 0,
    reason     text        not null default '',
    lease_ref  bigint,
    place      bigint      not null default 0
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);

create function paddock.instant_of(micros bigint) returns timestamptz language sql immutable
return timestamptz '1970-01-01 00:00:00+00' + micros * interval '1 microsecond';

insert into paddock.locks (name, slot, revision, last_token, last_end, capacity, queued, sitting, changed_at,
                           lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms, acquired_at, expires_at, metadata,
                           place, attachment, claim_by)
select r.name, 0, r.revision, r.token, r.last_end, coalesce((r.rest ->> 'capacity')::integer, 0),
       coalesce(p.waiters, 0), coalesce(p.leases, 0), r.changed_at,
       r.lease_id, r.mode, r.holder, case when r.lease_id is not null then r.token end, r.ttl_ms,
       case when r.lease_id is not null then coalesce((r.rest ->> 'grace')::bigint, 0) end,
       case when r.lease_id is not null then coalesce((r.rest ->> 'max_hold')::bigint, 0) end,
       r.acquired_at, r.expires_at, (r.rest ->> 'metadata')::json,
       coalesce((r.rest ->> 'place')::bigint, 0), coalesce((r.rest ->> 'attachment')::bigint, 0),
       paddock.instant_of((r.rest ->> 'claim_by')::bigint)
from paddock.records r
left join (
    select name, count(*) filter (where place > 0) as waiters, count(*) filter (where place = 0) as leases
    from paddock.parts
    group by name
) p on p.name = r.name;

insert into paddock.locks (name, slot, lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms, acquired_at, expires_at,
                           metadata, place, attachment, claim_by)
select name, slot, lease_id, mode, holder, token, ttl_ms, coalesce((rest ->> 'grace')::bigint, 0),
       coalesce((rest ->> 'max_hold')::bigint, 0), acquired_at, expires_at, (rest ->> 'metadata')::json,
       coalesce((rest ->> 'place')::bigint, 0), attachment, paddock.instant_of((rest ->> 'claim_by')::bigint)
from paddock.parts
where place = 0;

-- No call waits on a replica of the earlier release yet, so the waiters are detached.
insert into paddock.waiters (name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata, joined_at,
                             attachment, replica, until, alive_until, kept_until, offered)
select name, place, lease_id, mode, coalesce((rest ->> 'capacity')::integer, 0), holder, ttl_ms,
       coalesce((rest ->> 'grace')::bigint, 0), coalesce((rest ->> 'max_hold')::bigint, 0), (rest ->> 'metadata')::json, acquired_at,
       0, 0, least(expires_at, now.at), least(paddock.instant_of((rest ->> 'alive_until')::bigint), now.at),
       case when attachment = 0 then paddock.instant_of((rest ->> 'kept_until')::bigint) else now.at + interval '10 seconds' end,
       unclaimed
from paddock.parts, (select clock_timestamp() as at offset 0) now
where place > 0;

insert into paddock.events (id, at, name, slot, revision, kind, token, holder, mode, reason, lease_ref, place)
select e.id, e.at, e.name, e.slot, e.revision, e.kind, e.token, e.holder, e.mode, e.reason, k.key, e.place
from (
    select b.id * 4096 + (e.event ->> 0)::bigint as id,
           b.at + (e.event ->> 9)::bigint * interval '1 microsecond' as at,
           (n.entry ->> 0) collate "C" as name, (e.event ->> 1)::integer as slot, (e.event ->> 2)::bigint as revision,
           (e.event ->> 3)::smallint as kind, (e.event ->> 6)::bigint as token, e.event ->> 5 as holder,
           (e.event ->> 4)::smallint as mode, e.event ->> 8 as reason, (e.event ->> 7)::bigint as place
    from paddock.event_batches b
    cross join lateral unnest(b.entries) as n (entry)
    cross join lateral json_array_elements(n.entry) with ordinality as e (event, ord)
    where e.ord > 2
) e
left join paddock.event_refs k on k.id = e.id and k.key <> paddock.name_key(e.name);
create index events_by_name on paddock.events (name, id);
create index events_by_lease on paddock.events (lease_ref) where lease_ref is not null;

create type paddock.swap as (
    ord         integer,
    name        text,
    at          tid,
    version     xid,
    until       timestamptz,
    unused      bigint,
    draws       boolean,
    revision    bigint,
    last_token  bigint,
    last_end    smallint,
    queued      integer,
    changed_at  timestamptz,
    lease_id    uuid,
    mode        smallint,
    holder      text,
    ttl_ms      bigint,
    grace_ms    bigint,
    max_hold_ms bigint,
    acquired_at timestamptz,
    expires_at  timestamptz,
    metadata    text,
    place       bigint,
    attachment  bigint,
    kind         smallint,
    event_mode   smallint,
    event_holder text,
    event_place  bigint,
    reason       text,
    lease_ref    bigint
);

drop table paddock.records, paddock.parts, paddock.event_batches, paddock.event_refs;
drop sequence paddock.event_batch_ids;
drop function paddock.instant_of, paddock.name_key, paddock.decided_too_late;
