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

-- Section deadlocks.

-- Section database.

-- A publication for all tables lets the rows of a table change only if the table has a key.
drop index paddock.horizon_is_one_row;
alter table paddock.horizon
    add column only_row boolean not null default true check (only_row),
    add primary key (only_row);
