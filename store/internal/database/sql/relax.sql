-- For data that need not survive a crash: the commit does not wait for the disk.
select set_config('synchronous_commit', 'off', true)
