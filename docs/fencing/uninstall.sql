-- Undoes install.sql in the first schema of the search_path:
--
--     psql -v ON_ERROR_STOP=1 -f uninstall.sql
--
-- The tokens and operations seen are deleted: stale writes are not refused any more, and after
-- another installation the first token of each resource passes, whatever it is, and operations
-- that were done are new. Tables lose the triggers of paddock_fence_guard() and nothing else. If an
-- object of yours depends on these objects, nothing is dropped. Run it as the owner of the tables.

begin;

set local client_min_messages = warning;

do $$
declare
    here text := quote_ident(current_schema());
    others text;
    guard record;
begin
    if here is null then
        raise exception 'no schema of the search_path exists'
            using errcode = 'invalid_schema_name', hint = 'Set search_path to the schema that paddock_fence() is in.';
    end if;
    -- A search_path of several schemas names none of them, so it may mean an installation elsewhere.
    select string_agg(quote_ident(n.nspname), ', ' order by n.nspname) into others
        from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where c.relname = 'paddock_fences' and c.relkind = 'r' and c.relpersistence <> 't';
    if others is not null and to_regclass(here || '.paddock_fences') is null and current_setting('search_path') <> here then
        raise exception 'paddock_fence is not installed in the schema %, but in: %', here, others
            using errcode = 'undefined_table', hint = 'Give --fence-schema, or set search_path, to the schema that you mean.';
    end if;
    for guard in
        select t.tgname, t.tgrelid::regclass as relation
            from pg_trigger as t
            where t.tgfoid = to_regprocedure(here || '.paddock_fence_trigger()') and t.tgparentid = 0
    loop
        execute format('drop trigger %I on %s', guard.tgname, guard.relation);
    end loop;
    execute format('drop function if exists %s.paddock_fence_guard(regclass, text)', here);
    execute format('drop function if exists %s.paddock_fence_unguard(regclass)', here);
    execute format('drop function if exists %s.paddock_fence_trigger()', here);
    execute format('drop function if exists %s.paddock_fence(text[], bigint)', here);
    execute format('drop function if exists %s.paddock_fence(text, bigint, text)', here);
    execute format('drop function if exists %s.paddock_fence(text, bigint)', here);
    execute format('drop table if exists %s.paddock_operations', here);
    execute format('drop table if exists %s.paddock_fences', here);
end
$$;

commit;
