-- Locks, their leases and events, and the example of a fenced resource. The rules are in package lock.

-- One sequence for all names, so that the next token is greater even after the row of a lock was pruned and created
-- again. CACHE 1, because sessions would hand out cached numbers late. The maximum is the greatest integer of JavaScript.
create sequence paddock.fencing_tokens as bigint
    minvalue 1 maxvalue 9007199254740991 cache 1 no cycle;

-- Event IDs are drawn while the lock's row is locked, so the events of one lock have increasing IDs.
create sequence paddock.event_ids as bigint minvalue 1 cache 1 no cycle;

-- Slot 0 is the anchor of the lock: each decision about a name locks that row. It contains the exclusive lease, so that
-- the commonest cycle is two HOT updates of one row. Slots from 1 exist only while they have a shared lease or a permit.
--
-- No column that changes with a lease is indexed: an index on expires_at would make every renewal a non-HOT update.
create table paddock.locks (
    name         text        not null collate "C" check (length(name) between 1 and 200),
    slot         integer     not null default 0 check (slot >= 0),
    -- of the anchor: the number of transitions, the newest token and how its lease ended (0: active), the capacity while
    -- permits are held, the number of waiters, the time of the last transition
    revision     bigint      not null default 0,
    last_token   bigint      not null default 0,
    last_end     smallint    not null default 0,
    capacity     integer     not null default 0 check (capacity between 0 and 1000),
    queued       integer     not null default 0 check (queued >= 0),
    changed_at   timestamptz not null default clock_timestamp(),
    -- the lease in this slot; null if there is none
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

-- One row for each transition: the audit trail and the watch stream. A transaction that is still open may have a lower id
-- than one that has committed: see docs/design.md, "Reading events".
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
    -- of an event that ended a lease: a hash of the lease_id, by which a repeated call finds how its lease ended. The
    -- secret itself is not stored.
    lease_ref  bigint
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);

create index events_by_name on paddock.events (name, id);
create index events_by_lease on paddock.events (lease_ref) where lease_ref is not null;

-- The example resource of the fenced write. Its token is the greatest token seen.
create table paddock.fenced (
    key        text        primary key collate "C" check (length(key) between 1 and 200),
    lock       text        not null collate "C",
    token      bigint      not null,
    version    bigint      not null,
    value      json        not null,
    written_at timestamptz not null
) with (fillfactor = 80);
