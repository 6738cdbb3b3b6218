-- Section database.

alter table paddock.horizon drop column only_row;
create unique index horizon_is_one_row on paddock.horizon ((true));

-- Section deadlocks.

-- Section constraints.

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
