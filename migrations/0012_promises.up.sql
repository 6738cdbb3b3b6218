-- Locks the tables that this migration changes. Decisions queue behind it while it waits for a pg_dump, for example. So it
-- waits for a moment, rests ten times as long, and tries again.
do $$
begin
    set local lock_timeout = '100ms';
    for attempt in 1..30 loop
        begin
            lock table paddock.records, paddock.parts, paddock.sessions, paddock.epochs, paddock.event_batches, paddock.horizon,
                paddock.replicas in access exclusive mode;
            return;
        exception when lock_not_available or deadlock_detected then
            if attempt = 30 then
                raise exception using errcode = 'lock_not_available',
                    message = 'another session keeps tables of the schema paddock locked',
                    hint = 'End it (select * from pg_locks where relation = ''paddock.records''::regclass), and migrate again.';
            end if;
        end;
        perform pg_sleep(1);
    end loop;
end
$$;

-- Section tokens. The tokens of a commit are those of its row of events: 256 times the row's id, and so on. In the entries
-- of the row its own tokens are negative: they count back from the first token of the next row.

select setval('paddock.event_batch_ids', greatest(e.last_value, t.last_value / 256 + 1))
from paddock.event_batch_ids e, paddock.fencing_tokens t
where t.is_called;
alter sequence paddock.event_batch_ids maxvalue 35184372088831;
comment on sequence paddock.event_batch_ids is
    'The ids of paddock.event_batches. The greatest fencing token that was granted is less than 256 times the next one.';
drop sequence paddock.fencing_tokens;

create or replace view paddock.history as
select b.id * 4096 + (e.event ->> 0)::bigint as id,
       b.at + (e.event ->> 9)::bigint * interval '1 microsecond' as at,
       (n.entry ->> 0) collate "C" as name,
       (e.event ->> 2)::bigint as revision,
       (array['granted', 'released', 'expired', 'revoked', 'queued', 'dequeued', 'withdrawn', 'metadata_updated',
              'refused'])[(e.event ->> 3)::integer] as kind,
       (e.event ->> 6)::bigint + case when (e.event ->> 6)::bigint < 0 then (b.id + 1) * 256 else 0 end as token,
       e.event ->> 5 as holder,
       (array['exclusive', 'shared', 'permit'])[(e.event ->> 4)::integer] as mode,
       (e.event ->> 1)::integer as slot,
       (e.event ->> 7)::bigint as place,
       e.event ->> 8 as reason,
       (e.event ->> 10)::bigint + case when (e.event ->> 10)::bigint < 0 then (b.id + 1) * 256 else 0 end as newest_token,
       nullif((e.event ->> 11)::bigint, 0) * interval '1 microsecond' as late,
       nullif(e.event ->> 12, '') as held_by
from paddock.event_batches b
cross join lateral unnest(b.entries) as n (entry)
cross join lateral json_array_elements(n.entry) with ordinality as e (event, ord)
where e.ord > 2;

-- Section places.

-- Section constraints: what no decision survives is refused when it is written.
-- Rows that are there already are not checked: one that cannot be read costs its own lock.

-- PostgreSQL prepares a constraint again for each statement, so those of the tables that decisions write are short: they
-- refuse counters at their end and endless instants. A negative one costs its own lock, too.

alter table paddock.records add constraint records_can_be_read check (
    greatest(token, revision, last_event, ttl_ms) <= 9007199254740991 and greatest(changed_at, acquired_at, expires_at) < 'infinity'
) not valid;
alter table paddock.parts add constraint parts_can_be_read check (
    greatest(token, place, ttl_ms) <= 9007199254740991 and greatest(acquired_at, expires_at) < 'infinity'
) not valid;
alter table paddock.sessions add constraint sessions_can_be_read check (
    greatest(ttl_ms, grace_ms) <= 9007199254740991 and greatest(opened_at, expires_at, ended_at) < 'infinity'
) not valid;
alter table paddock.event_batches add constraint event_batches_can_be_read check (id <= 35184372088831 and at < 'infinity') not valid;
alter table paddock.epochs add constraint epochs_can_be_read check (
    epoch between 0 and 9007199254740991 and trees between 0 and 9007199254740991 and longest_ms between 0 and 100000000000
    and began_at between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'
    and closed_until between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'
) not valid;
alter table paddock.horizon add constraint horizon_can_be_read check (pruned between 0 and 144115188075855871) not valid;
alter table paddock.replicas add constraint replicas_can_be_read check (
    waiting between 0 and 1000000 and alive_until between '0001-01-01 00:00:00+00' and '9999-12-31 00:00:00+00'
) not valid;

-- A replica that knows a later count of the trees would wait for it.
create function paddock.refuse_fewer_trees() returns trigger language plpgsql as $$
begin
    raise exception using errcode = 'check_violation',
        message = format('paddock.epochs.trees counts the changes of the trees, and cannot go from %s back to %s', old.trees, new.trees);
end
$$;
create trigger trees_only_grow before update on paddock.epochs
    for each row when (new.trees < old.trees) execute function paddock.refuse_fewer_trees();

-- The duration in a field of the column rest, null for none. What is no number of milliseconds is none: a statement about
-- many locks must not fail for one of them.
create function paddock.duration(rest json, field text) returns interval language sql immutable parallel safe
return case when rest ->> field ~ '^[0-9]{1,12}$' then (rest ->> field)::bigint * interval '1 millisecond' end;

-- Section deadlocks.

-- Section database.

-- A publication for all tables lets the rows of a table change only if the table has a key.
drop index paddock.horizon_is_one_row;
alter table paddock.horizon
    add column only_row boolean not null default true check (only_row),
    add primary key (only_row);
