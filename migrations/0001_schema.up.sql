-- How Paddock stores locks. Read the tables in this order: a lock is a row of records, its other leases and its waiters
-- are rows of parts, and what happens to it is an event. The rules are in package lock; docs/design/decisions.md says
-- how transactions use the tables.

-- A decision about a lock reads and writes its row here. The row contains the lease in slot 0 or 1, exclusive or not, as
-- long as that has the newest token. So the commonest cycle, acquire and release, is two HOT updates of one row. No
-- column that changes with a lease is indexed: an index on expires_at would make every renewal a non-HOT update.
-- Columns of 8 bytes come first, so that a row has little padding.
--
-- PostgreSQL prepares a check constraint again for each statement. So those of the tables that decisions write are
-- short: they refuse counters at their end and endless instants, after which no decision could be written.
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
    rest        json,
    session     bigint,
    constraint records_can_be_read check (
        greatest(token, revision, last_event, ttl_ms) <= 9007199254740991
        and greatest(changed_at, acquired_at, expires_at) < 'infinity'
    )
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
create index records_of_session on paddock.records (session) where session is not null;
comment on table paddock.records is
    'The locks that were ever used, each with its first lease. To read it, use the view paddock.leases.';
comment on column paddock.records.token is 'The newest fencing token granted; 0: none.';
comment on column paddock.records.revision is 'Number of transitions.';
comment on column paddock.records.last_event is
    'The row of paddock.event_batches with the newest event of the lock; 0: unknown.';
comment on column paddock.records.changed_at is 'Time of the last transition.';
comment on column paddock.records.expires_at is
    'End of the lease, before its grace; in the year 9999: see the session.';
comment on column paddock.records.ttl_ms is '0: the lease was revoked, and only its grace is left.';
comment on column paddock.records.lease_id is
    'The secret that proves ownership of the lease; null: there is none in this row.';
comment on column paddock.records.parts is 'Number of rows of the lock in paddock.parts.';
comment on column paddock.records.mode is '1: exclusive, 2: shared, 3: permit, 4: intention shared, 5: intention exclusive.';
comment on column paddock.records.last_end is 'How the newest lease ended, as a kind of event; 0: it is active.';
comment on column paddock.records.rest is
    'Fields that most leases do not have: durations in milliseconds, instants in microseconds since 1970. Metadata is a '
    'string with the JSON text: PostgreSQL cannot read some JSON.';
comment on column paddock.records.session is 'The session that keeps the lease alive; null: none.';

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
    session     bigint,
    primary key (name, slot, place),
    constraint parts_can_be_read check (
        greatest(token, place, ttl_ms) <= 9007199254740991 and greatest(acquired_at, expires_at) < 'infinity'
    )
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
create index parts_of_session on paddock.parts (session) where session is not null;
-- Finds the waiters of a task and of its parts, when a replica looks for deadlocks.
create index parts_waiting_tasks on paddock.parts ((rest ->> 'task') collate "C")
    where place > 0 and rest ->> 'task' is not null;
comment on table paddock.parts is
    'What a lock has beside its row in paddock.records: shared leases, permits and intentions, each in a slot from 1 on, '
    'and waiters, in slot 0, each with a place. To read it, use the views paddock.leases and paddock.queue.';
comment on column paddock.parts.place is 'Orders the queue; 0: this row is a lease.';
comment on column paddock.parts.mode is 'As in paddock.records.';
comment on column paddock.parts.unclaimed is
    'The waiter was granted the lock, and its replica has not claimed the grant yet.';
comment on column paddock.parts.token is 'The fencing token of the lease; 0: this row is a waiter.';
comment on column paddock.parts.attachment is 'The waiting call; 0: none.';
comment on column paddock.parts.replica is 'The replica that serves the waiting call; 0: none.';
comment on column paddock.parts.acquired_at is 'Of a waiter: when it joined the queue.';
comment on column paddock.parts.expires_at is 'Of a waiter: when its call stops waiting.';
comment on column paddock.parts.lease_id is 'The secret that proves ownership of the lease, or of the place in the queue.';
comment on column paddock.parts.rest is 'As in paddock.records.';
comment on column paddock.parts.session is 'The session that keeps the lease, or the place in the queue; null: none.';

-- No index has a column that a heartbeat changes: a heartbeat writes one row, and no index.
create table paddock.sessions (
    ref            bigint      not null primary key,
    ttl_ms         bigint      not null,
    left_ms        bigint      not null default 0,
    grace_ms       bigint      not null,
    revoked_leases bigint      not null default 0,
    cells          bigint      not null default 0,
    opened_at      timestamptz not null,
    expires_at     timestamptz not null,
    ended_at       timestamptz,
    id             uuid        not null,
    ended          smallint    not null default 0,
    skip_grace     boolean     not null default false,
    cleared        boolean     not null default false,
    holder         text        not null,
    reason         text        not null default '',
    ended_by       text        not null default '',
    ended_by_id    text        not null default '',
    ended_in       text        not null default '',
    metadata       text,
    constraint sessions_can_be_read check (
        greatest(ttl_ms, left_ms, grace_ms, revoked_leases) <= 9007199254740991
        and greatest(opened_at, expires_at, ended_at) < 'infinity'
    )
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
create index sessions_left on paddock.sessions (ref) where not cleared;
create index sessions_cleared on paddock.sessions (ended_at) where cleared;
comment on table paddock.sessions is
    'Sessions, one row each. A lease of a session expires when the session does, and its own expires_at is in the year 9999.';
comment on column paddock.sessions.ref is 'The public name of the session, a hash of its id.';
comment on column paddock.sessions.id is 'The secret that proves ownership of the session.';
comment on column paddock.sessions.left_ms is
    'What was left at the last renewal, if that had a TTL that is shorter; 0: it had not.';
comment on column paddock.sessions.ended is 'How it has ended, as a kind of event; 0: it is open.';
comment on column paddock.sessions.skip_grace is 'It was ended without its grace.';
comment on column paddock.sessions.cleared is 'It has ended, and no lease and no waiter of it is left.';
comment on column paddock.sessions.reason is 'Why an operator ended it.';
comment on column paddock.sessions.revoked_leases is
    'How many of its leases were revoked one by one; more by a million after each fail-over in which leases may have been lost.';
comment on column paddock.sessions.ended_by is 'The name of the API key that closed or revoked it; empty in a service without keys.';
comment on column paddock.sessions.ended_by_id is 'The id of that key.';
comment on column paddock.sessions.ended_in is 'The trace id of the call that closed or revoked it; empty if it was not traced.';
comment on column paddock.sessions.cells is
    'The cells that use the session: bit n is the one at position n. Negative: it is only registered here. 0: there are no cells.';
comment on column paddock.sessions.metadata is 'The text of the metadata: PostgreSQL cannot read some JSON.';

create table paddock.trees (
    root        text        not null primary key collate "C",
    declared_at timestamptz not null
);
comment on table paddock.trees is
    'The roots of the declared trees, one row each. Below a root a lock covers the locks of longer names.';

create table paddock.freezes (
    scope     text        not null primary key collate "C",
    reason    text        not null,
    frozen_by text        not null,
    frozen_at timestamptz not null,
    until     timestamptz
);
comment on table paddock.freezes is
    'The freezes, one row each. Until the end of a freeze no lock of its scope is granted: the lock of that name, or all '
    'whose names begin with it if it ends with a colon.';
comment on column paddock.freezes.frozen_by is 'The name of the API key that began it; empty in a service without keys.';
comment on column paddock.freezes.until is 'When it ends by itself; null: never.';

create table paddock.rules (
    scope        text        not null primary key collate "C",
    max_ttl_ms   bigint      not null,
    max_hold_ms  bigint      not null,
    min_grace_ms bigint      not null,
    capacity     integer     not null,
    max_leases   integer     not null,
    set_by       text        not null,
    set_at       timestamptz not null
);
comment on table paddock.rules is
    'The rules, one row each: what may be asked of the locks of a scope, as in paddock.freezes. Of several rules, the one '
    'of the longest scope applies. Zero: the rule says nothing of it.';
comment on column paddock.rules.capacity is 'The number of permits of each lock.';
comment on column paddock.rules.max_leases is 'How many leases one API key may have in all locks of the scope.';
comment on column paddock.rules.set_by is 'The name of the API key that set it; empty in a service without keys.';

create table paddock.cells (
    name       text    not null primary key collate "C",
    position   integer not null unique,
    takes      boolean not null,
    self       boolean not null,
    generation bigint  not null,
    constraint cells_can_be_read check (position between 0 and 62 and generation between 0 and 9007199254740991)
);
create unique index cells_self on paddock.cells (self) where self;
comment on table paddock.cells is
    'The cells of the deployment, one row each; empty for one whose locks are all in this database.';
comment on column paddock.cells.position is
    'The ids of paddock.event_batches that are drawn in the cell are this modulo 64. It never changes.';
comment on column paddock.cells.takes is 'The cell is the home of groups, by a hash of their names.';
comment on column paddock.cells.self is 'This database is the cell.';
comment on column paddock.cells.generation is
    'The number of the last change of the set of cells; the same in all rows.';

create table paddock.placement (
    group_name text    not null primary key collate "C",
    cell       text    not null collate "C",
    generation bigint  not null,
    state      text    not null check (state in ('here', 'leaving', 'gone', 'refused')),
    pinned     boolean not null default false,
    constraint placement_can_be_read check (generation between 0 and 9007199254740991)
);
comment on table paddock.placement is
    'Where groups are, one row each: a group is the locks with the same name up to the first colon. A group without a row is '
    'at its home.';
comment on column paddock.placement.cell is 'The cell that has the group, or that it moves to.';
comment on column paddock.placement.pinned is 'An operator has chosen the cell: no other one takes the group by itself.';
comment on column paddock.placement.generation is 'Of what is known of the group in several cells, the greatest is the newest.';
comment on column paddock.placement.state is
    'here: this database decides about the group; leaving: it moves to the cell; gone: it is there; refused: it is there, and a '
    'move from there to here was given up.';

-- The audit trail and the stream of events. One row has the events of one commit, so that a commit inserts one row
-- for any number of locks. Rows become visible in another order than that of their ids: see docs/design/events.md.
create table paddock.event_batches (
    id      bigint      not null primary key,
    at      timestamptz not null,
    entries json[]      not null,
    moved   boolean     not null default false,
    constraint event_batches_can_be_read check (id <= 35184372088831 and at < 'infinity')
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000);
-- Few rows are in it, and none that a decision writes.
create index event_batches_moved on paddock.event_batches (at) where moved;
comment on column paddock.event_batches.moved is
    'The batch was written in another cell, and its groups have moved here since. It keeps its id.';
comment on table paddock.event_batches is 'The events of one commit. To read it, use the view paddock.history.';
comment on column paddock.event_batches.entries is
    'One element for each lock: its name, the row with its event before these or 0, and its events. An event is its number '
    '(its id is 4096 times that of the row, plus the number), slot, revision, kind, mode, holder, token, place, reason, '
    'and by how many microseconds it is later than the row. As far as it has them, these follow: name and id of the API key '
    'that caused it, its session, its set, its trace; and what a refusal, a deadlock, several permits or a freeze have. A token that the row grants is negative: it counts back from '
    '256 times the next row''s id.';

-- CACHE 1, because sessions would hand out cached numbers late. At the maximum, 256 times the id is the greatest
-- integer that JavaScript represents exactly.
create sequence paddock.event_batch_ids as bigint minvalue 1 maxvalue 35184372088831 cache 1 no cycle;
comment on sequence paddock.event_batch_ids is
    'The ids of paddock.event_batches. The greatest fencing token that was granted is less than 256 times the next one.';

create table paddock.event_refs (
    key bigint not null,
    id  bigint not null,
    primary key (key, id)
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000);
comment on table paddock.event_refs is
    'Finds the event that ended a lease, by a hash of name and lease_id, and every 16th event of a lock, by '
    'paddock.name_key.';

-- A publication for all tables lets the rows of a table change only if the table has a primary key: only_row is that.
create table paddock.horizon (
    pruned   bigint  not null,
    only_row boolean not null primary key default true check (only_row),
    constraint horizon_can_be_read check (pruned between 0 and 144115188075855871)
);
comment on table paddock.horizon is 'One row: how far events were pruned. A reader with an earlier cursor has missed events.';
comment on column paddock.horizon.pruned is 'The greatest id of a pruned event; 0: none was pruned.';
insert into paddock.horizon (pruned) values (0);

create table paddock.epochs (
    epoch             bigint      not null primary key,
    began_at          timestamptz not null,
    system_identifier bigint      not null,
    timeline          text        not null,
    reason            text        not null,
    closed_until      timestamptz,
    quorum            boolean     not null default false,
    longest_ms        bigint      not null,
    policy            bigint      not null default 0,
    constraint epochs_can_be_read check (
        epoch between 0 and 9007199254740991 and policy between 0 and 9007199254740991
        and longest_ms between 0 and 100000000000
        and began_at between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'
        and closed_until between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'
    )
);
comment on table paddock.epochs is
    'The epochs of the database, one row each; the newest is the current one. A fail-over or a restore, which may lose the '
    'last transactions, starts a new epoch: see docs/operations.md.';
comment on column paddock.epochs.system_identifier is 'With the timeline, the server that the epoch is of.';
comment on column paddock.epochs.closed_until is 'Grants are paused until then; null: they are not.';
comment on column paddock.epochs.quorum is 'Nothing is decided unless commits wait for a standby.';
comment on column paddock.epochs.longest_ms is 'The longest sum of TTL and grace of a lease that may have been granted.';
comment on column paddock.epochs.policy is
    'How often trees, freezes, rules, cells and the placement of groups were changed in this epoch. A decision is written only if there was no change since it was made.';
insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, longest_ms)
select 1, clock_timestamp(), system_identifier, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), 'installed', 0
from pg_control_system();

create table paddock.replicas (
    id          bigint      not null primary key,
    alive_until timestamptz not null,
    waiting     integer     not null,
    watching    boolean     not null,
    connections integer     not null default 0,
    streams     integer     not null default 0,
    started_at  timestamptz not null default clock_timestamp(),
    beat_at     timestamptz not null default clock_timestamp(),
    host        text        not null default '',
    version     text        not null default '',
    constraint replicas_can_be_read check (
        waiting between 0 and 1000000 and alive_until between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'
        and least(connections, streams) >= 0
        and greatest(started_at, beat_at) < 'infinity' and least(started_at, beat_at) >= '0001-01-01 00:00:00+00'
    )
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table paddock.replicas is 'The replicas, and what they know of each other.';
comment on column paddock.replicas.alive_until is 'Until then the replica counts as alive; each heartbeat moves it on.';
comment on column paddock.replicas.waiting is 'Number of waiting calls.';
comment on column paddock.replicas.watching is 'Some client watches events at the replica.';
comment on column paddock.replicas.connections is 'Number of open connections of its clients.';
comment on column paddock.replicas.streams is 'Number of event streams that its clients have open.';
comment on column paddock.replicas.started_at is 'When its process started.';
comment on column paddock.replicas.beat_at is 'When it sent its last heartbeat.';
comment on column paddock.replicas.host is 'The name of the machine, or of the container, that it runs on, with the port that it listens on.';

create table paddock.fenced (
    key        text        not null primary key collate "C" check (length(key) between 1 and 200),
    lock       text        not null collate "C",
    token      bigint      not null,
    version    bigint      not null,
    value      json        not null,
    written_at timestamptz not null
) with (fillfactor = 80);
comment on table paddock.fenced is 'Values of fenced writes: the example of a resource that checks fencing tokens.';
comment on column paddock.fenced.token is 'The greatest token seen; a write with a smaller one is refused.';
comment on column paddock.fenced.version is 'Number of writes.';

create table paddock.fenced_operations (
    key          text        not null collate "C",
    operation_id text        not null collate "C" check (length(operation_id) between 1 and 200),
    done_at      timestamptz not null default clock_timestamp(),
    primary key (key, operation_id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
create index fenced_operations_by_age on paddock.fenced_operations (done_at);
comment on table paddock.fenced_operations is 'Operations of fenced writes: each is written once. Pruned after 30 days.';

-- Views for operators: the leases, the waiters and the events. They show no lease_id, which is a secret.

create view paddock.leases as
select l.name, l.slot, coalesce(string_to_array(l.rest ->> 'slots', ' ')::integer[], array[l.slot]) as slots, l.holder,
       (array['exclusive', 'shared', 'permit', 'intention_shared', 'intention_exclusive'])[l.mode] as mode,
       l.token, l.acquired_at, r.expires_at,
       r.ttl_ms * interval '1 millisecond' as ttl, r.grace,
       case when r.claim_by is null and l.ttl_ms > 0 and l.rest ->> 'stays' is not null
                 and r.expires_at + r.grace <= statement_timestamp() then 'suspect'
            when coalesce(r.claim_by, r.expires_at + r.grace) <= statement_timestamp() then 'expired'
            when r.claim_by is not null then 'unclaimed'
            when l.ttl_ms = 0 then 'revoked'
            when r.expires_at > statement_timestamp() then 'held'
            else 'grace' end as state,
       (l.rest ->> 'metadata')::json as metadata,
       r.session
from (
    select name, case when mode = 1 then 0 else 1 end as slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest, session
    from paddock.records
    where lease_id is not null
    union all
    select name, slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest, session
    from paddock.parts
    where place = 0
) l
left join paddock.sessions s on s.ref = l.session and l.expires_at = '9999-12-31 00:00:00+00'
cross join lateral (
    select coalesce(s.grace_ms, (l.rest ->> 'grace')::bigint, 0) * interval '1 millisecond' as grace,
           coalesce(s.ttl_ms, l.ttl_ms) as ttl_ms,
           least(l.expires_at, s.expires_at,
                 case when s.ref is not null then l.acquired_at + (l.rest ->> 'max_hold')::bigint * interval '1 millisecond' end)
               as expires_at,
           timestamptz '1970-01-01 00:00:00+00' + (l.rest ->> 'claim_by')::bigint * interval '1 microsecond' as claim_by,
           lpad(to_hex(s.ref), 16, '0') as session
) r;
comment on view paddock.leases is 'The leases, one row each.';
comment on column paddock.leases.slot is
    'The slot of a shared lease or a permit, from 1 on; 0 for an exclusive lease. Of several permits, the first.';
comment on column paddock.leases.slots is 'All slots of the lease.';
comment on column paddock.leases.state is
    'held; grace: expired, but its holder may renew it; suspect: it does not end by itself, and was not renewed; revoked: only its grace is left; unclaimed: granted to a waiter '
    'whose replica has not confirmed it yet; expired: it is over, and no decision has recorded that yet.';
comment on column paddock.leases.session is 'The session that keeps the lease alive; null for none.';

create view paddock.closed as
select name, timestamptz '1970-01-01 00:00:00+00' + (rest ->> 'closed_until')::bigint * interval '1 microsecond' as until,
       rest ->> 'closed_by' as holder,
       timestamptz '1970-01-01 00:00:00+00' + (rest ->> 'closed_at')::bigint * interval '1 microsecond' as done_at,
       token
from paddock.records
where (rest ->> 'closed_until')::bigint > extract(epoch from statement_timestamp()) * 1000000;
comment on view paddock.closed is 'The locks that were released because their work is done, and are granted to no client until an instant.';
comment on column paddock.closed.holder is 'Who has done the work, and released the lock at done_at.';
comment on column paddock.closed.token is 'The fencing token of the lease that was released. To revoke it opens the lock.';

create view paddock.queue as
select name, place, holder, (array['exclusive', 'shared', 'permit', 'intention_shared', 'intention_exclusive'])[mode] as mode,
       case when mode = 3 then coalesce((rest ->> 'permits')::integer, 1) end as permits, acquired_at as joined_at,
       expires_at as waits_until, nullif(replica, 0) as replica, unclaimed
from paddock.parts
where place > 0;
comment on view paddock.queue is 'The waiters, one row each, in the order of name and place.';
comment on column paddock.queue.permits is 'How many permits it waits for; null in other modes.';
comment on column paddock.queue.waits_until is 'When the waiting call ends, or has ended.';
comment on column paddock.queue.replica is 'The replica that serves the waiting call; null: no call waits at the place.';
comment on column paddock.queue.unclaimed is 'The waiter was granted the lock, and its replica has not confirmed it yet.';

create view paddock.history as
select b.id * 4096 + (e.event ->> 0)::bigint as id,
       b.at + (e.event ->> 9)::bigint * interval '1 microsecond' as at,
       (n.entry ->> 0) collate "C" as name,
       (e.event ->> 2)::bigint as revision,
       (array['granted', 'released', 'expired', 'revoked', 'queued', 'dequeued', 'withdrawn', 'metadata_updated',
              'refused', 'frozen', 'thawed', 'opened', 'suspected'])[(e.event ->> 3)::integer] as kind,
       (e.event ->> 6)::bigint + case when (e.event ->> 6)::bigint < 0 then (b.id + 1) * 256 else 0 end as token,
       e.event ->> 5 as holder,
       (array['exclusive', 'shared', 'permit'])[(e.event ->> 4)::integer] as mode,
       (e.event ->> 1)::integer as slot,
       coalesce(string_to_array(nullif(e.event ->> 19, ''), ' ')::integer[], array[(e.event ->> 1)::integer]) as slots,
       (e.event ->> 7)::bigint as place,
       e.event ->> 8 as reason,
       nullif(e.event ->> 10, '') as by,
       nullif(e.event ->> 11, '') as by_id,
       lpad(to_hex(nullif((e.event ->> 12)::bigint, 0)), 16, '0') as session,
       string_to_array(nullif(e.event ->> 13, ''), ' ') as set,
       nullif(e.event ->> 14, '') as trace_id,
       case when (e.event ->> 3)::integer = 9
            then (e.event ->> 15)::bigint + case when (e.event ->> 15)::bigint < 0 then (b.id + 1) * 256 else 0 end end as newest_token,
       nullif((e.event ->> 16)::bigint, 0) * interval '1 microsecond' as late,
       nullif(e.event ->> 17, '') as held_by,
       timestamptz '1970-01-01 00:00:00+00' + nullif((e.event ->> 20)::bigint, 0) * interval '1 microsecond' as until
from paddock.event_batches b
cross join lateral unnest(b.entries) as n (entry)
cross join lateral json_array_elements(n.entry) with ordinality as e (event, ord)
where e.ord > 2;
comment on view paddock.history is
    'The events, one row each, in the order of their ids. Reads all of paddock.event_batches.';
comment on column paddock.history.token is 'The fencing token of the lease; 0 for a waiter.';
comment on column paddock.history.place is 'The place in the queue, if the event is about one; else 0.';
comment on column paddock.history.newest_token is 'The newest token of the lock when a token was refused.';
comment on column paddock.history.late is 'How long before the refusal the lease of the refused token had ended.';
comment on column paddock.history.held_by is 'Who held the lock when the token was refused.';
comment on column paddock.history.by is
    'The name of the API key whose call caused the event; null for what time did, and in a service without keys.';
comment on column paddock.history.by_id is 'The id of that key.';
comment on column paddock.history.session is 'The session of the lease or the waiter; null for none.';
comment on column paddock.history.set is 'The locks that were asked for together; null for one alone.';
comment on column paddock.history.trace_id is 'The trace id of the call that caused the event; null if it was not traced.';
comment on column paddock.history.until is 'When the lock opens that was closed, or when a freeze ends.';

-- Fails a statement. Replicas try again after PD001.
create function paddock.decided_too_late() returns boolean language plpgsql as $$
begin
    raise exception using errcode = 'PD001', message = 'a decision waited for a locked row until it did not hold any more; it is made again';
end
$$;

-- The key of a lock in paddock.event_refs: 63 bits of the SHA-256 of its name.
create function paddock.name_key(name text) returns bigint language sql immutable parallel safe
return (('x' || encode(substr(sha256(convert_to(name, 'UTF8')), 1, 8), 'hex'))::bit(64) >> 1)::bigint;

-- The duration in a field of the column rest, null for none. What is no number of milliseconds is none: a statement
-- about many locks must not fail for one of them.
create function paddock.duration(rest json, field text) returns interval language sql immutable parallel safe
return case when rest ->> field ~ '^[0-9]{1,12}$' then (rest ->> field)::bigint * interval '1 millisecond' end;

-- The instant in a field of the column rest, null for none, and for what is no number of microseconds.
create function paddock.instant(rest json, field text) returns timestamptz language sql immutable parallel safe
return case when rest ->> field ~ '^[0-9]{1,18}$' then timestamptz '1970-01-01 00:00:00+00' + (rest ->> field)::bigint * interval '1 microsecond' end;

-- A replica that knows a later count of the changes would wait for it.
create function paddock.refuse_earlier_policy() returns trigger language plpgsql as $$
begin
    raise exception using errcode = 'check_violation',
        message = format('paddock.epochs.policy counts the changes of the policy, and cannot go from %s back to %s', old.policy, new.policy);
end
$$;
create trigger policy_only_grows before update on paddock.epochs
    for each row when (new.policy < old.policy) execute function paddock.refuse_earlier_policy();
