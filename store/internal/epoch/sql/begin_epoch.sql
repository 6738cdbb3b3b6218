-- Starts an epoch. $1 is the reason, $2 the longest lease and $3 the newest epoch that the caller knows. $4 tells
-- whether there may be leases that this database has lost; with a quorum of standbys there are none.
insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, closed_until, quorum, longest_ms)
select greatest(e.epoch, $3::bigint) + 1,
       now.at,
       s.system_identifier,
       substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),
       $1::text,
       case when $4::boolean or not e.quorum
            then now.at + greatest(e.longest_ms, $2::bigint) * interval '1 millisecond' end,
       e.quorum,
       greatest(e.longest_ms, $2::bigint)
from (select clock_timestamp() as at offset 0) now, paddock.epochs e, pg_control_system() s
order by e.epoch desc
limit 1
returning epoch, began_at, closed_until
