-- The queue, leases that several have at once, and what a replica must know of
-- the others. As before only shape lives here: every rule is in package lock.

-- An anchor tells whether there is more to read about its lock: how many leases
-- sit in slots from 1 on, beside `queued`, how many wait. A lease that came out of
-- the queue knows its place, the call that waited for it, and, until the replica that serves
-- the call has fetched it, when the grant is withdrawn.
alter table paddock.locks
    add column sitting    integer not null default 0 check (sitting >= 0),
    add column place      bigint  not null default 0,
    add column attachment bigint  not null default 0,
    add column claim_by   timestamptz;

-- Who waits, in the order of their places. A place is drawn with the anchor locked.
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
    -- the call that waits there, 0 for none; the replica that serves it, and until
    -- when: the end of the wait, the life of the replica, the keeping of the place
    attachment  bigint      not null,
    replica     bigint      not null,
    until       timestamptz not null,
    alive_until timestamptz not null,
    kept_until  timestamptz not null,
    -- whether the lock was granted to it, and its replica has not fetched the grant
    offered     boolean     not null default false,
    primary key (name, place)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);

-- The replicas that serve waiters or watchers: until when each is taken to live,
-- how many wait with it, and whether anybody there follows the events.
create table paddock.replicas (
    id          bigint      primary key,
    alive_until timestamptz not null,
    waiting     integer     not null,
    watching    boolean     not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- On queued, left, and granted out of the queue: the place.
alter table paddock.events add column place bigint not null default 0;

-- One row: the greatest id of an event that was pruned. A reader whose cursor is
-- before that has missed something.
create table paddock.horizon (
    pruned bigint not null
);
insert into paddock.horizon values (0);
create unique index horizon_is_one_row on paddock.horizon ((true));
