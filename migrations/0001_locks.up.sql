-- Names, the leases that sit on them, what happened to them, and the example
-- of a fenced resource. Only shape lives here: every rule is in package lock.

-- One sequence for all names: rows may be pruned and a lock created again, its
-- next token is still greater. CACHE 1, or sessions would hand out old numbers
-- late; capped where JavaScript still counts exactly.
create sequence paddock.fencing_tokens as bigint
    minvalue 1 maxvalue 9007199254740991 cache 1 no cycle;

-- Event ids are drawn while the lock's row is locked, so that they follow the
-- order of what happened to that lock.
create sequence paddock.event_ids as bigint minvalue 1 cache 1 no cycle;

-- Slot 0 is the lock's anchor: each decision about a name is made with that row
-- locked. It carries the exclusive lease inline, so that the commonest cycle is
-- two HOT updates of one row. Slots from 1 exist only while a shared lease or a
-- permit sits in them.
--
-- No index on anything that changes with a lease: one on expires_at would turn
-- every renewal into a non-HOT update.
create table paddock.locks (
    name         text        not null collate "C" check (length(name) between 1 and 200),
    slot         integer     not null default 0 check (slot >= 0),
    -- the anchor's own: how many transitions there were, the newest token
    -- granted and how its lease ended (0: it has not), the capacity while
    -- permits are out, how many wait, when the last transition was
    revision     bigint      not null default 0,
    last_token   bigint      not null default 0,
    last_end     smallint    not null default 0,
    capacity     integer     not null default 0 check (capacity between 0 and 1000),
    queued       integer     not null default 0 check (queued >= 0),
    changed_at   timestamptz not null default clock_timestamp(),
    -- the lease in this slot; all null while there is none
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

-- What happened, a row a transition: audit trail, watch stream and history in
-- one. A transaction that is still open may hold a lower id than one that has
-- committed: docs/design.md, "Reading events", tells how readers know.
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
    -- on an event that ended a lease: a hash of its lease_id, by which a
    -- repeated call finds how its lease ended. The secret itself is not kept.
    lease_ref  bigint
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);

create index events_by_name on paddock.events (name, id);
create index events_by_lease on paddock.events (lease_ref) where lease_ref is not null;

-- The example resource of the fenced write. Its token is the greatest it has seen.
create table paddock.fenced (
    key        text        primary key collate "C" check (length(key) between 1 and 200),
    lock       text        not null collate "C",
    token      bigint      not null,
    version    bigint      not null,
    value      json        not null,
    written_at timestamptz not null
) with (fillfactor = 80);
