-- The epochs of the database, one row for each; the newest is the current one. A fail-over or a restore, which may lose the
-- last transactions, starts a new epoch: see docs/operations.md.
create table paddock.epochs (
    epoch             bigint      primary key,
    began_at          timestamptz not null,
    -- the server: its system identifier and its timeline
    system_identifier bigint      not null,
    timeline          text        not null,
    reason            text        not null,
    -- grants are paused until then; null if they are not
    closed_until      timestamptz,
    -- whether each answer waits for a standby: without one nothing is decided
    quorum            boolean     not null default false,
    -- the longest sum of ttl and grace of a granted lease
    longest_ms        bigint      not null
);

insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, longest_ms)
select 1, clock_timestamp(), system_identifier, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), 'installed',
       (select coalesce(max(ttl_ms + grace_ms), 0) from paddock.locks where lease_id is not null)
from pg_control_system();
