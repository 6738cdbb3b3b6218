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

-- Section database.

alter table paddock.horizon drop column only_row;
create unique index horizon_is_one_row on paddock.horizon ((true));

-- Section deadlocks.

-- Section constraints.

drop function paddock.duration;
drop trigger trees_only_grow on paddock.epochs;
drop function paddock.refuse_fewer_trees;
alter table paddock.records drop constraint records_can_be_read;
alter table paddock.parts drop constraint parts_can_be_read;
alter table paddock.sessions drop constraint sessions_can_be_read;
alter table paddock.epochs drop constraint epochs_can_be_read;
alter table paddock.event_batches drop constraint event_batches_can_be_read;
alter table paddock.horizon drop constraint horizon_can_be_read;
alter table paddock.replicas drop constraint replicas_can_be_read;

-- Section places.

-- Section tokens.

create sequence paddock.fencing_tokens maxvalue 9007199254740991;
select setval('paddock.fencing_tokens', (last_value + 1) * 256) from paddock.event_batch_ids;
alter sequence paddock.event_batch_ids no maxvalue;
update paddock.event_batches b
set entries = array(
    select (select json_agg(
                case when e.ord > 2 and (e.value ->> 6)::bigint < 0 or e.ord > 2 and (e.value ->> 10)::bigint < 0
                     then (select json_agg(case when v.ord in (7, 11) and nullif(v.value::text, 'null')::bigint < 0
                                                then to_json(v.value::text::bigint + (b.id + 1) * 256) else v.value end order by v.ord)
                           from json_array_elements(e.value) with ordinality as v (value, ord))
                     else e.value end order by e.ord)
            from json_array_elements(n.entry) with ordinality as e (value, ord))
    from unnest(b.entries) with ordinality as n (entry, ord)
    order by n.ord);
create or replace view paddock.history as
select b.id * 4096 + (e.event ->> 0)::bigint as id,
       b.at + (e.event ->> 9)::bigint * interval '1 microsecond' as at,
       (n.entry ->> 0) collate "C" as name,
       (e.event ->> 2)::bigint as revision,
       (array['granted', 'released', 'expired', 'revoked', 'queued', 'dequeued', 'withdrawn', 'metadata_updated',
              'refused'])[(e.event ->> 3)::integer] as kind,
       (e.event ->> 6)::bigint as token,
       e.event ->> 5 as holder,
       (array['exclusive', 'shared', 'permit'])[(e.event ->> 4)::integer] as mode,
       (e.event ->> 1)::integer as slot,
       (e.event ->> 7)::bigint as place,
       e.event ->> 8 as reason,
       (e.event ->> 10)::bigint as newest_token,
       nullif((e.event ->> 11)::bigint, 0) * interval '1 microsecond' as late,
       nullif(e.event ->> 12, '') as held_by
from paddock.event_batches b
cross join lateral unnest(b.entries) as n (entry)
cross join lateral json_array_elements(n.entry) with ordinality as e (event, ord)
where e.ord > 2;
