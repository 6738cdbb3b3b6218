-- The server of the connection, whether the role may see its standbys, and the role.
select split_part(current_setting('server_version'), ' ', 1) as version, pg_is_in_recovery() as standby,
       coalesce(host(inet_server_addr()), '') as address, coalesce(inet_server_port(), 0) as port,
       pg_postmaster_start_time() as started_at, current_setting('synchronous_standby_names') as synchronous,
       pg_has_role(current_user, 'pg_read_all_stats', 'usage') as may_see_standbys, current_user::text as role
