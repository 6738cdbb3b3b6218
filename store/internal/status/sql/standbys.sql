-- The standbys of the server, and how far behind they are.
select coalesce(application_name, '') as name, coalesce(host(client_addr), '') as address, coalesce(state, '') as state,
       coalesce(sync_state, '') as sync,
       pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end, replay_lsn)::bigint
           as lag_bytes,
       replay_lag
from pg_stat_replication
order by name, address
