-- The three other transactions that have used tables of the schema for the longest time. The age of those of another role is not
-- shown to everyone.
select format('process %s (%s%s)', a.pid, coalesce(nullif(a.application_name, ''), a.backend_type, 'unnamed'),
              ', for ' || round(extract(epoch from clock_timestamp() - a.xact_start), 1) || ' s')
from pg_catalog.pg_stat_activity a
where a.pid <> pg_backend_pid() and a.datname = current_database() and exists (
    select from pg_catalog.pg_locks l
    join pg_catalog.pg_class c on c.oid = l.relation
    where l.pid = a.pid and l.granted and c.relnamespace = 'paddock'::regnamespace
)
order by a.xact_start
limit 3
