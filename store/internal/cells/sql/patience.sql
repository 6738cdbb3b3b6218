-- How long the statements of the transaction wait for what is locked, $1 milliseconds.
select set_config('lock_timeout', $1, true)
