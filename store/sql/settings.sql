-- For this transaction alone where $2 is true, so that a pooler may stand in between;
-- else for the connection.
-- A grant must be on disk before its token is shown; stronger settings stay. The
-- warning that a commit is on no standby must be heard. A statement that is its own transaction
-- goes on behind rows that it has waited for.
-- Look-ups go by key whatever the statistics say: a table that was never
-- analysed would be read from end to end. What that leaves without a choice is
-- priced so high that it would be compiled first, unless jit is off. With the
-- plans so fixed there is no use in making them anew each time.
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
