-- Compiles no statement of the transaction.
select set_config('jit', 'off', true)
