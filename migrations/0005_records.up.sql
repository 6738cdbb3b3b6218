-- One narrow row a lock, one row of events a batch. The tables locks, waiters and events of schema 4 become views that
-- refuse replicas of an earlier release, see paddock.refuse_old_replica.
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
comment on table paddock.records is 'The locks that were ever used, with the exclusive lease of each. Read paddock.leases instead.';
comment on column paddock.records.token is 'The newest fencing token granted; zero: none.';
comment on column paddock.records.revision is 'Number of transitions.';
comment on column paddock.records.last_event is 'The row of paddock.event_batches with the newest event of the lock.';
comment on column paddock.records.parts is 'Number of its rows in paddock.parts.';
comment on column paddock.records.rest is 'Whatever else there is to know of the lease, if it is not the default.';

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
comment on table paddock.parts is 'What there is beside the row of a lock: shared leases and permits, each in a slot from 1 on, and waiters, in slot 0, each with a place.';
comment on column paddock.parts.place is 'Orders the queue; zero: this is a lease.';
comment on column paddock.parts.acquired_at is 'Of a waiter: when it joined the queue.';
comment on column paddock.parts.expires_at is 'Of a waiter: when its call stops waiting.';
comment on column paddock.parts.unclaimed is 'The waiter was granted the lock, and its replica has not claimed the grant yet.';

create table paddock.event_batches (
    id      bigint      primary key,
    at      timestamptz not null,
    entries json[]      not null
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000);
comment on table paddock.event_batches is 'The events of one commit. Read paddock.history instead.';

create table paddock.event_refs (
    key bigint not null,
    id  bigint not null,
    primary key (key, id)
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);
comment on table paddock.event_refs is 'Finds the event that ended a lease, and every 16th event of a lock.';

create sequence paddock.event_batch_ids as bigint minvalue 1 cache 1 no cycle;

create function paddock.decided_too_late() returns boolean language plpgsql as $$
begin
    raise exception using errcode = 'PD001', message = 'a decision waited for a locked row until it did not hold any more; it is made again';
end
$$;
