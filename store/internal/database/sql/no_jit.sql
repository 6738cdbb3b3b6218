-- No statement of the transaction is compiled.
select set_config('jit', 'off', true)
