-- The newest epoch, and whether this server is the one that it describes. The position of the log on disk, the last
-- batch of events drawn and the newest event show whether the server was restored to an earlier state. A batch has 4096
-- event ids.
select clock_timestamp() as now,
       pg_postmaster_start_time() as started,
       e.epoch,
       e.closed_until,
       e.longest_ms,
       e.quorum,
       e.policy,
       e.system_identifier = s.system_identifier
           and e.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) as here,
       (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint as flushed,
       current_setting('synchronous_standby_names') <> '' as replicates,
       (select case when is_called then last_value else 0 end from paddock.event_batch_ids) as last_batch,
       greatest((select max(id) * 4096 + 4095 from paddock.event_batches), (select pruned from paddock.horizon), 0)
           as last_event
from paddock.epochs e, pg_control_system() s
order by e.epoch desc
limit 1
