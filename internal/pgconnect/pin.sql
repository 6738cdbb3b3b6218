-- The settings of a connection, whatever those of the role and of the database are. No statement is ended after a time:
-- Paddock bounds its own. A policy that would hide rows makes a statement fail instead. Warnings arrive.
select pg_catalog.set_config(name, value, false)
from (values
    ('intervalstyle', 'postgres'),
    ('bytea_output', 'hex'),
    ('extra_float_digits', '1'),
    ('array_nulls', 'on'),
    ('search_path', 'pg_catalog, pg_temp'),
    ('statement_timeout', '0'),
    ('transaction_timeout', '0'),
    ('lock_timeout', '0'),
    ('idle_session_timeout', '0'),
    ('idle_in_transaction_session_timeout', '1min'),
    ('row_security', 'off'),
    ('client_min_messages', 'warning'),
    ('default_transaction_isolation', 'read committed'),
    ('default_transaction_deferrable', 'off'),
    ('transform_null_equals', 'off')
) as settings (name, value)
where pg_catalog.current_setting(name, true) is not null -- PostgreSQL knows it
