-- For what need not outlive a crash: its commit waits for no flush.
select set_config('synchronous_commit', 'off', true)
