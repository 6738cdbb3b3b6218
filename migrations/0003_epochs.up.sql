-- Which database this is. After a fail-over, or a restore, another continues the
-- history, perhaps without the end of it: docs/operations.md, "When the database is
-- another". One row for each; the newest is the one that holds.
create table paddock.epochs (
    epoch             bigint      primary key,
    began_at          timestamptz not null,
    -- the server that it is about: its system identifier, and the timeline of its log
    system_identifier bigint      not null,
    timeline          text        not null,
    reason            text        not null,
    -- nothing is granted before that instant; null if there is no such time
    closed_until      timestamptz,
    -- whether everything that was answered is on a standby, too: nothing is decided
    -- while there is none
    quorum            boolean     not null default false,
    -- the longest ttl and grace of a lease that was granted, together
    longest_ms        bigint      not null
);

insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, longest_ms)
select 1, clock_timestamp(), system_identifier, substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), 'installed',
       (select coalesce(max(ttl_ms + grace_ms), 0) from paddock.locks where lease_id is not null)
from pg_control_system();
