-- Runs after the rows are locked, in this order: a mark for readers of events, the time of the decision, the numbers
-- for it, and the identity of the database as in epoch.sql. The last token is read before any is drawn.
--
-- The mark is an advisory lock whose key is an event id. Until the transaction ends, readers know that events with
-- greater ids may be missing.
select clock_timestamp(),
       array(select nextval('paddock.fencing_tokens') from generate_series(mark.one, $1::integer)) as tokens,
       array(select nextval('paddock.event_ids') from generate_series(mark.one, $2::integer)) as ids,
       pg_current_xact_id()::xid,
       e.epoch,
       e.closed_until,
       e.longest_ms,
       e.quorum,
       e.system_identifier = s.system_identifier
           and e.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) as here,
       (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint as flushed,
       current_setting('synchronous_standby_names') <> '' as replicates,
       mark.last_token,
       greatest((select max(id) from paddock.events), (select pruned from paddock.horizon), 0) as last_event
from (
    select 1 as one, (select case when is_called then last_value else 0 end from paddock.fencing_tokens) as last_token
    from (
        select pg_advisory_xact_lock_shared($3::bigint | case when is_called then last_value else 0 end)
        from paddock.event_ids
        offset 0
    ) held
    offset 0
) mark
cross join (select * from paddock.epochs order by epoch desc limit 1) e
cross join pg_control_system() s
