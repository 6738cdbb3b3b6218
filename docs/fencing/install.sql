-- Fencing in your own tables. Run this in the database that holds them:
--
--     psql -v ON_ERROR_STOP=1 -f install.sql
--
-- It installs into the first schema of the search_path and needs PostgreSQL 14 or newer.
-- It may be run again: tokens seen are kept, the functions are replaced by those of this
-- file. Where another schema has them, it refuses to begin a second table of tokens unless
-- the search_path is that one schema. README.md describes how to use them.
--
-- SQLSTATE PF001: the token is stale; roll back and stop the work.
-- SQLSTATE PF002: the call is wrong: no token, resource or operation_id, or one out of bounds.

begin;

set local client_min_messages = warning;

do $$
declare
    here text := quote_ident(current_schema());
    other text;
begin
    if current_setting('server_version_num')::integer < 140000 then
        raise exception 'this is PostgreSQL %', current_setting('server_version')
            using errcode = 'feature_not_supported', hint = 'Fencing needs PostgreSQL 14 or newer.';
    end if;
    if here is null then
        raise exception 'no schema of the search_path exists'
            using errcode = 'invalid_schema_name', hint = 'Create the schema, or set search_path to one that exists.';
    end if;
    -- Concurrent installations take turns.
    perform pg_advisory_xact_lock(hashtextextended('paddock_fences', 0));
    if to_regclass(here || '.event_batches') is not null and to_regclass(here || '.epochs') is not null then
        raise exception 'the schema % has the tables of Paddock itself, and is for nothing else', here
            using errcode = 'invalid_schema_name',
                hint = 'Give --fence-schema, or set search_path, to the schema of the tables to protect, such as public.';
    end if;
    -- A new table of tokens would accept tokens that the existing table refuses. With several
    -- schemas in the search_path, a schema created since may have become the first one.
    select quote_ident(n.nspname) into other from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where c.relname = 'paddock_fences' and c.relkind = 'r' and c.relpersistence <> 't'
        order by n.nspname limit 1;
    if other is not null and to_regclass(here || '.paddock_fences') is null and current_setting('search_path') <> here then
        raise exception 'paddock_fence is installed in the schema %, and not in %', other, here
            using errcode = 'duplicate_table',
                hint = format('To update it, give --fence-schema %1$s, or set search_path = %1$s. To begin a second table '
                    'of tokens, which knows none of the first, use %2$s instead.', other, here);
    end if;
    -- Each function below keeps this search_path ("set search_path from current"), so it
    -- finds its table whatever the caller's search_path. pg_temp comes last; otherwise a
    -- temporary table called paddock_fences would hide the real one.
    perform set_config('search_path', here || ', pg_temp', true);
end
$$;

-- Free space in the page makes a greater token a HOT update, which needs no vacuum.
create table if not exists paddock_fences (
    resource text        collate "C" primary key check (octet_length(resource) between 1 and 1000),
    token    bigint      not null check (token between 1 and 9007199254740991),
    seen_at  timestamptz not null default clock_timestamp()
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

comment on table paddock_fences is
    'The greatest fencing token that each resource has seen, and when it was first seen. Written by paddock_fence().';

-- autovacuum keeps few entries of pruned operations at the low end of the second index, which pruning reads first.
create table if not exists paddock_operations (
    resource     text        collate "C" not null,
    operation_id text        collate "C" not null check (char_length(operation_id) between 1 and 200),
    done_at      timestamptz not null default clock_timestamp(),
    primary key (resource, operation_id)
) with (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000
);

create index if not exists paddock_operations_by_age on paddock_operations (done_at);

comment on table paddock_operations is
    'The operations of the last 30 days, by resource. Written and pruned by paddock_fence(resource, token, operation_id).';

-- The insert locks the resource's row until the transaction ends, even if its condition
-- is false and it writes nothing. So the next transaction waits for this commit, and ten
-- thousand transactions under one token leave one row version.
create or replace function paddock_fence(resource text, token bigint) returns void
    language plpgsql
    set search_path from current
as $$
#variable_conflict use_column
declare
    newest bigint;
begin
    if coalesce(octet_length(paddock_fence.resource), 0) not between 1 and 1000 then
        raise exception 'the resource has % bytes', coalesce(octet_length(paddock_fence.resource), 0)
            using errcode = 'PF002', hint = 'Use a resource name of 1 to 1000 bytes, such as accounts:42.';
    end if;
    if coalesce(paddock_fence.token, 0) not between 1 and 9007199254740991 then
        raise exception 'token % is out of bounds', coalesce(paddock_fence.token::text, 'null')
            using errcode = 'PF002', hint = 'Use the fencing_token of your lease: 1 to 9007199254740991.';
    end if;
    insert into paddock_fences as f (resource, token)
        values (paddock_fence.resource, paddock_fence.token)
        on conflict (resource) do update set token = excluded.token, seen_at = clock_timestamp()
        where f.token < excluded.token;
    if found then
        return;
    end if;
    select f.token into strict newest from paddock_fences as f where f.resource = paddock_fence.resource;
    if paddock_fence.token < newest then
        raise exception 'token % is stale for resource "%"', paddock_fence.token, paddock_fence.resource
            using errcode = 'PF001',
                detail = format('token shown: %s, greatest token seen: %s', paddock_fence.token, newest),
                hint = 'A later lease has used the resource: roll back and stop.';
    end if;
end
$$;

comment on function paddock_fence(text, bigint) is
    'Call this first in a transaction that writes the resource. Refuses a token lower than the greatest seen with SQLSTATE '
    'PF001, records a greater one, and makes the transactions of one resource commit in the order of their tokens.';

-- All callers pass the fences in one order, so no two transactions wait for each other.
create or replace function paddock_fence(resources text[], token bigint) returns void
    language plpgsql
    set search_path from current
as $$
declare
    one text;
begin
    if coalesce(cardinality(paddock_fence.resources), 0) = 0 then
        raise exception 'the array of resources is empty'
            using errcode = 'PF002', hint = 'Name one resource or more, such as array[''accounts:17'', ''accounts:42''].';
    end if;
    for one in select distinct r collate "C" from unnest(paddock_fence.resources) as r order by 1 loop
        perform paddock_fence(one, paddock_fence.token);
    end loop;
end
$$;

comment on function paddock_fence(text[], bigint) is
    'Calls paddock_fence() for each of the resources, in the order of their names, so that transactions with several '
    'resources do not deadlock. If one of them refuses the token, the call fails, and records nothing.';

-- The transactions of one resource take turns at the fence, so two with one operation_id do not meet at the insert. A
-- transaction above READ COMMITTED that has waited fails there with 40001, because its snapshot lacks the operation.
--
-- Every fiftieth call on average prunes, because entries of pruned rows stay in the index until the next vacuum, and each
-- scan of the oldest rows reads them. SKIP LOCKED: no call waits for the pruning of another transaction. Above READ
-- COMMITTED the deletion of one row by two transactions would fail with 40001, so nothing is pruned there.
create or replace function paddock_fence(resource text, token bigint, operation_id text) returns boolean
    language plpgsql
    set search_path from current
as $$
#variable_conflict use_column
declare
    is_new boolean;
begin
    if coalesce(char_length(paddock_fence.operation_id), 0) not between 1 and 200 then
        raise exception 'the operation_id has % characters', coalesce(char_length(paddock_fence.operation_id), 0)
            using errcode = 'PF002', hint = 'Use an operation_id of 1 to 200 characters, such as booking:1734.';
    end if;
    perform paddock_fence(paddock_fence.resource, paddock_fence.token);
    insert into paddock_operations (resource, operation_id)
        values (paddock_fence.resource, paddock_fence.operation_id)
        on conflict do nothing;
    is_new := found;
    delete from paddock_operations where ctid = any (array(
        select o.ctid from paddock_operations as o
            where o.done_at < clock_timestamp() - interval '30 days'
            order by o.done_at
            limit case when random() < 0.02 and current_setting('transaction_isolation') = 'read committed' then 100 else 0 end
            for update skip locked));
    return is_new;
end
$$;

comment on function paddock_fence(text, bigint, text) is
    'Like paddock_fence(resource, token), for an operation that is to be done once. Returns true if the operation is new, and '
    'false if a transaction with this operation_id was committed for the resource in the last 30 days, under whatever token.';

create or replace function paddock_fence_trigger() returns trigger
    language plpgsql
    set search_path from current
as $$
declare
    setting text := coalesce(current_setting('paddock.token', true), '');
begin
    if setting !~ '^[0-9]{1,16}$' then
        raise exception 'table %.% is guarded, and paddock.token is "%"', tg_table_schema, tg_table_name, setting
            using errcode = 'PF002',
                hint = 'In the transaction, before the write: SET LOCAL paddock.token = ''41'', with the fencing_token of your lease.';
    end if;
    perform paddock_fence(tg_argv[0], setting::bigint);
    return null;
end
$$;

comment on function paddock_fence_trigger() is
    'The trigger that paddock_fence_guard() creates on a table. It calls paddock_fence() with the token in the setting paddock.token.';

create or replace function paddock_fence_guard(relation regclass, resource text default null) returns text
    language plpgsql
    set search_path from current
as $$
declare
    named text;
begin
    select coalesce(paddock_fence_guard.resource, format('%I.%I', n.nspname, c.relname)) into named
        from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where c.oid = relation and c.relkind in ('r', 'p') and c.oid <> 'paddock_fences'::regclass;
    if named is null then
        raise exception '% cannot be guarded', coalesce(relation::text, 'null')
            using errcode = 'wrong_object_type', hint = 'Guard a table or a partitioned table that holds your data.';
    end if;
    if octet_length(named) not between 1 and 1000 then
        raise exception 'the resource has % bytes', octet_length(named)
            using errcode = 'PF002', hint = 'Use a resource name of 1 to 1000 bytes, such as accounts.';
    end if;
    execute format('create or replace trigger paddock_fence before insert or update or delete on %s '
        'for each statement execute function paddock_fence_trigger(%L)', relation, named);
    execute format('create or replace trigger paddock_fence_truncate before truncate on %s '
        'for each statement execute function paddock_fence_trigger(%L)', relation, named);
    return named;
end
$$;

comment on function paddock_fence_guard(regclass, text) is
    'Guards a table: from now on each statement that writes it must pass the fence of the resource (default schema.table) '
    'with the token in paddock.token. Returns the resource. A second call with another resource replaces the first.';

create or replace function paddock_fence_unguard(relation regclass) returns void
    language plpgsql
    set search_path from current
    set client_min_messages = warning
as $$
begin
    execute format('drop trigger if exists paddock_fence on %s', relation);
    execute format('drop trigger if exists paddock_fence_truncate on %s', relation);
end
$$;

comment on function paddock_fence_unguard(regclass) is
    'Undoes paddock_fence_guard(): the table can be written without a token again. Tokens seen are kept.';

commit;
