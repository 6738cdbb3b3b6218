-- One narrow row a lock, and one row of events a commit. The tables locks, waiters and events become views that refuse
-- replicas of an earlier release, see paddock.refuse_old_replica.
--
-- Events and locks are converted twice. First all of them, while replicas of the earlier release go on deciding. Then,
-- with the old tables locked, what has changed since, and the waiters. Each statement sees what others have committed
-- meanwhile, so the isolation is not left to the database's default.
set transaction isolation level read committed;
set local work_mem = '64MB';
set local jit = off;

create table paddock.records (
    token       bigint      not null default 0,
    revision    bigint      not null default 0,
    last_event  bigint      not null default 0,
    changed_at  timestamptz not null default clock_timestamp(),
    acquired_at timestamptz,
    expires_at  timestamptz,
    ttl_ms      bigint,
    lease_id    uuid,
    parts       integer     not null default 0,
    mode        smallint,
    last_end    smallint    not null default 0,
    name        text        not null primary key collate "C",
    holder      text,
    rest        json
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
comment on table paddock.records is
    'The locks that were ever used, each with its exclusive lease. To read it, use the view paddock.leases.';
comment on column paddock.records.token is 'The newest fencing token granted; 0: none.';
comment on column paddock.records.revision is 'Number of transitions.';
comment on column paddock.records.last_event is
    'The row of paddock.event_batches with the newest event of the lock; 0: unknown.';
comment on column paddock.records.changed_at is 'Time of the last transition.';
comment on column paddock.records.ttl_ms is '0: the lease was revoked, and only its grace is left.';
comment on column paddock.records.lease_id is
    'The secret that proves ownership of the lease; null: there is no exclusive lease.';
comment on column paddock.records.parts is 'Number of rows of the lock in paddock.parts.';
comment on column paddock.records.mode is '1: exclusive, 2: shared, 3: permit.';
comment on column paddock.records.last_end is 'How the newest lease ended, as a kind of event; 0: it is active.';
comment on column paddock.records.rest is
    'Fields that most leases do not have: durations in milliseconds, instants in microseconds since 1970.';

create table paddock.parts (
    place       bigint      not null,
    slot        integer     not null,
    mode        smallint    not null,
    unclaimed   boolean     not null default false,
    token       bigint      not null default 0,
    ttl_ms      bigint      not null,
    attachment  bigint      not null,
    replica     bigint      not null default 0,
    acquired_at timestamptz not null,
    expires_at  timestamptz not null,
    lease_id    uuid        not null,
    name        text        not null collate "C",
    holder      text        not null,
    rest        json,
    primary key (name, slot, place)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
comment on table paddock.parts is
    'What a lock has beside its row in paddock.records: shared leases and permits, each in a slot from 1 on, and waiters, '
    'in slot 0, each with a place. To read it, use the views paddock.leases and paddock.queue.';
comment on column paddock.parts.place is 'Orders the queue; 0: this row is a lease.';
comment on column paddock.parts.unclaimed is
    'The waiter was granted the lock, and its replica has not claimed the grant yet.';
comment on column paddock.parts.attachment is 'The waiting call; 0: none.';
comment on column paddock.parts.replica is 'The replica that serves the waiting call; 0: none.';
comment on column paddock.parts.acquired_at is 'Of a waiter: when it joined the queue.';
comment on column paddock.parts.expires_at is 'Of a waiter: when its call stops waiting.';

create table paddock.event_batches (
    id      bigint      primary key,
    at      timestamptz not null,
    entries json[]      not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000);
comment on table paddock.event_batches is 'The events of one commit. To read it, use the view paddock.history.';
comment on column paddock.event_batches.entries is
    'One element for each lock: its name, the row with its event before these or 0, and its events. An event is its number '
    '(its id is 4096 times that of the row, plus the number), slot, revision, kind, mode, holder, token, place, reason, '
    'and by how many microseconds it is later than the row.';

create table paddock.event_refs (
    key bigint not null,
    id  bigint not null,
    primary key (key, id)
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);
comment on table paddock.event_refs is
    'Finds the event that ended a lease, by a hash of name and lease_id, and every 16th event of a lock, by '
    'paddock.name_key.';

create sequence paddock.event_batch_ids as bigint minvalue 1 cache 1 no cycle;

create function paddock.decided_too_late() returns boolean language plpgsql as $$
begin
    raise exception using errcode = 'PD001', message = 'a decision waited for a locked row until it did not hold any more; it is made again';
end
$$;

-- The key of a lock in paddock.event_refs: 63 bits of the SHA-256 of its name.
create function paddock.name_key(name text) returns bigint language sql immutable parallel safe
return (('x' || encode(substr(sha256(convert_to(name, 'UTF8')), 1, 8), 'hex'))::bit(64) >> 1)::bigint;

-- The newest event of each lock that was converted; the locks as they were converted, each with the place of its row and
-- the transaction that wrote it; and the names of locks to convert. These tables are dropped in the end.
create table paddock.newest_events (name text primary key collate "C", id bigint not null);
create table paddock.converted (name text collate "C", at tid, version xid);
create table paddock.changed (name text collate "C");

-- Converts the events from one id to another. An id stays what it is, so its row is id / 4096. A lock's events before
-- these were converted before. The newest event of each lock goes into event_refs, so that it is found although the lock
-- was pruned; and so does the newest in row 0, because no entry can name that row.
create function paddock.convert_events(first_id bigint, last_id bigint) returns void language sql as $$
insert into paddock.event_batches (id, at, entries)
select batch, since, array_agg(concat('[', to_json(name), ',', previous, events, ']')::json order by first)
from (
    select batch, since, name, min(id) as first,
           coalesce(lag(batch) over (partition by name order by batch),
                    (select n.id / 4096 from paddock.newest_events n where n.name = numbered.name), 0) as previous,
           string_agg(concat(',[', id % 4096, ',', slot, ',', revision, ',', kind, ',', mode, ',', to_json(holder), ',',
                             token, ',', place, ',', to_json(reason), ',',
                             (extract(epoch from at - since) * 1000000)::bigint, ']'), '' order by id) as events
    from (
        select *, id / 4096 as batch, min(at) over (partition by id / 4096) as since
        from paddock.events
        where id between first_id and last_id
    ) numbered
    group by batch, since, name
) entries
group by batch, since;

insert into paddock.event_refs (key, id)
select lease_ref, id
from paddock.events
where lease_ref is not null and id between first_id and last_id
union all
select paddock.name_key(name), id
from (
    select name, id, revision, max(id) over (partition by name) as newest,
           max(id) filter (where id < 4096) over (partition by name) as newest_in_row_0
    from paddock.events
    where id between first_id and last_id
) numbered
where revision % 16 = 0 or id in (newest, newest_in_row_0)
order by 2;

insert into paddock.newest_events (name, id)
select name, max(id)
from paddock.events
where id between first_id and last_id
group by name
on conflict (name) do update set id = excluded.id
$$;

-- The column rest of a lease or a waiter, with the fields that are neither null nor zero. Metadata is a string with the JSON
-- text: PostgreSQL stores any JSON, and cannot read some of it.
create function paddock.rest_of(capacity integer, grace bigint, max_hold bigint, claim_by timestamptz, place bigint,
                                attachment bigint, alive_until timestamptz, kept_until timestamptz, metadata json)
returns json language sql stable
return ('{' || nullif(concat_ws(',',
    '"capacity":' || nullif(capacity, 0),
    '"grace":' || nullif(grace, 0),
    '"max_hold":' || nullif(max_hold, 0),
    '"claim_by":' || (extract(epoch from claim_by) * 1000000)::bigint,
    '"place":' || nullif(place, 0),
    '"attachment":' || nullif(attachment, 0),
    '"alive_until":' || (extract(epoch from alive_until) * 1000000)::bigint,
    '"kept_until":' || (extract(epoch from kept_until) * 1000000)::bigint,
    '"metadata":' || to_json(metadata::text)), '') || '}')::json;

-- Converts the locks that were not converted as they are now. Each row that was written since has another xmin.
create function paddock.convert_locks() returns void language sql as $$
truncate paddock.changed;
insert into paddock.changed (name)
select coalesce(l.name, c.name)
from (select name, ctid as at, xmin as version from paddock.locks where slot = 0) l
full join paddock.converted c on c.name = l.name
where l.name is null or c.name is null or c.at <> l.at or c.version <> l.version;

delete from paddock.records r using paddock.changed c where c.name = r.name;

with found as materialized (
    select l.*, l.ctid as at, l.xmin as version
    from paddock.changed c
    join paddock.locks l on l.name = c.name and l.slot = 0
), kept as (
    insert into paddock.converted (name, at, version) select name, at, version from found
)
insert into paddock.records (token, revision, last_event, changed_at, acquired_at, expires_at, ttl_ms, lease_id, mode, last_end,
                             name, holder, rest)
select l.last_token, l.revision, coalesce(e.id / 4096, 0), l.changed_at, l.acquired_at, l.expires_at, l.ttl_ms, l.lease_id,
       l.mode, l.last_end, l.name, l.holder,
       paddock.rest_of(l.capacity, l.grace_ms, l.max_hold_ms, l.claim_by, l.place, l.attachment, null, null, l.metadata)
from found l
left join paddock.newest_events e on e.name = l.name
order by l.name
$$;

-- Converts the events that are settled: those in rows below the newest committed event and below the least mark of an
-- open transaction, which are read in this order. No transaction can add an event to those rows.
do $$
declare
    newest bigint;
    open   bigint;
begin
    select max(id) into newest from paddock.events;
    -- the marks of the earlier release: advisory locks in the space 5ADD, each the greatest event id drawn before
    select min((classid::bigint << 32 | objid::bigint) & x'FFFFFFFFFFFF'::bigint) into open
    from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted and classid::bigint >> 16 = x'5ADD'::bigint
      and database = (select oid from pg_database where datname = current_database());
    perform paddock.convert_events(0, (least(newest, open) + 1) / 4096 * 4096 - 1);
end
$$;
select paddock.convert_locks();
analyze paddock.newest_events, paddock.converted, paddock.records;

-- Locks the tables of the earlier release, and moves to the new numbers of events: the next row's id is above all ids that
-- were drawn. While this waits for a lock, of a pg_dump for example, calls wait behind it. So it waits for a moment at
-- most, lets others continue, and tries again. The sequence is dropped here, because a statement that waits for
-- paddock.locks may have locked the sequence already.
do $$
begin
    set local lock_timeout = '500ms';
    for attempt in 1..30 loop
        begin
            lock table paddock.locks, paddock.waiters, paddock.events in access exclusive mode;
            perform setval('paddock.event_batch_ids',
                           greatest((select last_value from paddock.event_ids), (select max(id) from paddock.events),
                                    (select pruned from paddock.horizon)) / 4096 + 1, false);
            drop sequence paddock.event_ids;
            return;
        exception when lock_not_available or deadlock_detected then
            if attempt = 30 then
                raise exception using errcode = 'lock_not_available',
                    message = 'another session keeps paddock.locks, paddock.waiters or paddock.events locked',
                    hint = 'End it (select * from pg_locks where relation = ''paddock.locks''::regclass), and migrate again.';
            end if;
        end;
        perform pg_sleep(1);
    end loop;
end
$$;

do $$
declare
    first_id bigint := (select coalesce(max(id) + 1, 0) * 4096 from paddock.event_batches);
begin
    perform paddock.convert_events(first_id, 9223372036854775807);
    perform paddock.convert_locks();
    -- locks that were converted before their newest event
    update paddock.records r
    set last_event = n.id / 4096
    from paddock.newest_events n
    where n.id >= first_id and n.name = r.name and r.last_event < n.id / 4096;
end
$$;
delete from paddock.event_batches where id < (select (pruned + 1) / 4096 from paddock.horizon);
delete from paddock.event_refs where id / 4096 < (select (pruned + 1) / 4096 from paddock.horizon);

insert into paddock.parts (place, slot, mode, token, ttl_ms, attachment, acquired_at, expires_at, lease_id, name, holder, rest)
select 0, slot, mode, token, ttl_ms, attachment, acquired_at, expires_at, lease_id, name, holder,
       paddock.rest_of(0, grace_ms, max_hold_ms, claim_by, place, 0, null, null, metadata)
from paddock.locks
where slot > 0;

-- Waiting calls are served by replicas of the earlier release, which cannot claim a grant any more. So their waiters are
-- detached: skipped until the client repeats the call at another replica, where it finds its place.
insert into paddock.parts (place, slot, mode, unclaimed, ttl_ms, attachment, acquired_at, expires_at, lease_id, name, holder, rest)
select place, 0, mode, offered, ttl_ms, 0, joined_at, least(until, now.at), lease_id, name, holder,
       paddock.rest_of(capacity, grace_ms, max_hold_ms, null, 0, 0, least(alive_until, now.at),
                       case when attachment = 0 then kept_until else now.at + interval '10 seconds' end, metadata)
from paddock.waiters, (select clock_timestamp() as at offset 0) now;

update paddock.records r
set parts = p.parts
from (select name, count(*) as parts from paddock.parts group by name) p
where p.name = r.name;

drop function paddock.convert_events, paddock.convert_locks, paddock.rest_of;
drop table paddock.newest_events, paddock.converted, paddock.changed, paddock.locks, paddock.waiters, paddock.events;
drop type paddock.swap;

-- Replicas of the earlier release read one of these views before they decide or answer anything. 57P03 is an error that
-- passes for them: they answer 503, log the message, and try again.
create function paddock.refuse_old_replica() returns boolean language plpgsql as $$
begin
    raise exception using errcode = 'cannot_connect_now', message = 'this replica is of an earlier release than the schema '
        'of its database; stop it and start the new release';
end
$$;
create function paddock.refuse_old_write() returns trigger language plpgsql as $$
begin
    perform paddock.refuse_old_replica();
    return null;
end
$$;

-- The columns have the types that the statements of the earlier release expect. Offset 0 keeps the planner from comparing
-- the nulls, and from leaving out the function.
create view paddock.locks as
select null::text collate "C" as name, null::integer as slot, null::bigint as revision, null::bigint as last_token,
       null::smallint as last_end, null::integer as capacity, null::integer as queued, null::timestamptz as changed_at,
       null::uuid as lease_id, null::smallint as mode, null::text as holder, null::bigint as token, null::bigint as ttl_ms,
       null::bigint as grace_ms, null::bigint as max_hold_ms, null::timestamptz as acquired_at,
       null::timestamptz as expires_at, null::uuid as session_id, null::json as metadata, null::integer as sitting,
       null::bigint as place, null::bigint as attachment, null::timestamptz as claim_by, null::tid as ctid, null::xid as xmin
from paddock.refuse_old_replica()
offset 0;
create view paddock.waiters as
select null::text collate "C" as name, null::bigint as place, null::uuid as lease_id, null::smallint as mode,
       null::integer as capacity, null::text as holder, null::bigint as ttl_ms, null::bigint as grace_ms,
       null::bigint as max_hold_ms, null::json as metadata, null::timestamptz as joined_at, null::bigint as attachment,
       null::bigint as replica, null::timestamptz as until, null::timestamptz as alive_until,
       null::timestamptz as kept_until, null::boolean as offered
from paddock.refuse_old_replica()
offset 0;
create view paddock.events as
select null::bigint as id, null::timestamptz as at, null::text collate "C" as name, null::integer as slot,
       null::bigint as revision, null::smallint as kind, null::bigint as token, null::text as holder,
       null::smallint as mode, null::text as reason, null::bigint as lease_ref, null::bigint as place
from paddock.refuse_old_replica()
offset 0;
create view paddock.event_ids as
select null::bigint as last_value, null::bigint as log_cnt, null::boolean as is_called
from paddock.refuse_old_replica()
offset 0;
create trigger refuse instead of insert or update or delete on paddock.locks
    for each row execute function paddock.refuse_old_write();
create trigger refuse instead of insert or update or delete on paddock.waiters
    for each row execute function paddock.refuse_old_write();
create trigger refuse instead of insert or update or delete on paddock.events
    for each row execute function paddock.refuse_old_write();
comment on view paddock.locks is 'Refuses replicas of an earlier release. To see the leases, use paddock.leases.';
comment on view paddock.waiters is 'Refuses replicas of an earlier release. To see the waiters, use paddock.queue.';
comment on view paddock.events is 'Refuses replicas of an earlier release. To see the events, use paddock.history.';
comment on view paddock.event_ids is 'Refuses replicas of an earlier release.';
