-- Settings of the transaction where $2 is true, so that a pooler may be in between; otherwise of the connection. A
-- grant must be on disk before its token is shown; stronger settings stay. The warning that a commit is on no standby
-- must arrive. A statement that is its own transaction continues after waiting for rows.
--
-- Look-ups use the key whatever the statistics say: a table that was never analyzed would be read from end to end.
-- The planner assigns a very high cost to plans that are left without a choice, which would trigger JIT compilation,
-- so jit is off. With plans fixed this way, planning again each time has no use.
select set_config('synchronous_commit',
           case when current_setting('synchronous_commit') in ('off', 'local', 'remote_write')
                then 'on' else current_setting('synchronous_commit') end, $2::boolean),
       set_config('client_min_messages', 'warning', $2),
       set_config('lock_timeout', $1, $2),
       set_config('idle_in_transaction_session_timeout', '5s', $2),
       set_config('enable_seqscan', 'off', $2),
       set_config('enable_bitmapscan', 'off', $2),
       set_config('enable_hashjoin', 'off', $2),
       set_config('enable_mergejoin', 'off', $2),
       set_config('enable_material', 'off', $2),
       set_config('jit', 'off', $2),
       set_config('default_transaction_isolation', 'read committed', $2),
       set_config('plan_cache_mode', 'force_generic_plan', $2)
