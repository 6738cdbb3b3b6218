-- The role, whether its transactions may only read, the statements that give it the rights it lacks, and the tables,
-- sequences and functions that are missing, and the triggers that are missing or disabled. Other objects in the schema
-- are not looked at: the service does not need them, and their owners may not want them read.
with needed (relname) as (
    select unnest(array['schema_migrations', 'records', 'parts', 'sessions', 'trees', 'freezes', 'rules', 'cells', 'placement', 'event_batches',
                        'event_refs', 'event_batch_ids', 'horizon', 'epochs', 'replicas', 'fenced', 'fenced_operations']::name[])
), functions (proname) as (
    select unnest(array['decided_too_late', 'name_key', 'duration', 'instant', 'refuse_earlier_policy']::name[])
), triggers (tgname, relname) as (
    values ('policy_only_grows'::name, 'epochs'::name)
), relations as (
    select c.oid, c.relkind, format('%I.%I', 'paddock', relname) as name, relname
    from pg_class as c join needed using (relname)
    where c.relnamespace = to_regnamespace('paddock') and c.relkind in ('r', 'p', 'S')
), lacking (remedy) as (
    select format('grant usage on schema paddock to %I;', current_user)
    where not has_schema_privilege(to_regnamespace('paddock'), 'usage')
    union all (
        select format('grant %s on %s%s to %I;', missing.rights, case relkind when 'S' then 'sequence ' else '' end,
                   string_agg(name, ', ' order by name), current_user)
        from relations, lateral (
            select string_agg(need, ', ' order by place)
            from unnest(case when relkind = 'S' then array['usage', 'select', 'update']
                             when relname = 'schema_migrations' then array['select']
                             else array['select', 'insert', 'update', 'delete'] end) with ordinality as needs (need, place)
            where not case when relkind = 'S' then has_sequence_privilege(oid, need) else has_table_privilege(oid, need) end
        ) as missing (rights)
        where missing.rights is not null
        group by missing.rights, relkind
        order by 1
    )
    union all
    select format('grant execute on function %s to %I;', f.oid::regprocedure, current_user)
    from pg_proc as f
    where not has_function_privilege(f.oid, 'execute')
      and (f.pronamespace = to_regnamespace('paddock')
              and f.proname in (select proname from functions)
           or f.pronamespace = 'pg_catalog'::regnamespace
              and f.proname in ('pg_notify', 'pg_backend_pid', 'pg_control_system', 'pg_current_wal_flush_lsn', 'pg_current_wal_insert_lsn',
                                'pg_walfile_name', 'pg_postmaster_start_time', 'pg_relation_size', 'pg_column_size',
                                'pg_advisory_xact_lock_shared', 'set_config'))
    union all
    select format('%s table %s disable row level security;', 'alter', name)
    from relations
    where relkind <> 'S' and row_security_active(oid)
)
select current_user::text, current_setting('transaction_read_only')::boolean,
       coalesce((select array_agg(remedy) from lacking), '{}'),
       array(select relname::text from needed where relname not in (select relname from relations)
             union all
             select proname || '()' from functions
             where proname not in (select proname from pg_proc where pronamespace = to_regnamespace('paddock'))
             union all
             select format('trigger %s on %s', tgname, relname) from triggers
             where not exists (select from pg_trigger as t join relations as r on r.oid = t.tgrelid
                               where t.tgname = triggers.tgname and r.relname = triggers.relname and t.tgenabled in ('O', 'A'))
               and relname in (select relname from relations)
             order by 1)
