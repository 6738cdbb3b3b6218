-- The queue, shared leases and permits, and what replicas know of each other.

-- On the anchor, `sitting` is the number of leases in slots from 1, and `queued` the number of waiters: whether there are
-- further rows to read. A lease from the queue has its place, the call that waited for it, and, while the grant is
-- unclaimed, the time when it is withdrawn.
alter table paddock.locks
    add column sitting    integer not null default 0 check (sitting >= 0),
    add column place      bigint  not null default 0,
    add column attachment bigint  not null default 0,
    add column claim_by   timestamptz;

-- The waiters in the order of their places. A place is drawn with the anchor locked.
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
    -- the waiting call, 0 for none; the replica that serves it; and the ends of the wait, of the known life of the
    -- replica, and of the retention of the place
    attachment  bigint      not null,
    replica     bigint      not null,
    until       timestamptz not null,
    alive_until timestamptz not null,
    kept_until  timestamptz not null,
    -- whether the waiter has an unclaimed grant
    offered     boolean     not null default false,
    primary key (name, place)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);

-- The replicas with waiters or watchers: until when each counts as alive, its number of waiting calls, and whether it has
-- watchers.
create table paddock.replicas (
    id          bigint      primary key,
    alive_until timestamptz not null,
    waiting     integer     not null,
    watching    boolean     not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Of queued and dequeued events, and of grants from the queue: the place.
alter table paddock.events add column place bigint not null default 0;

-- One row: the greatest id of a pruned event. A reader with an earlier cursor has missed events.
create table paddock.horizon (
    pruned bigint not null
);
insert into paddock.horizon values (0);
create unique index horizon_is_one_row on paddock.horizon ((true));
