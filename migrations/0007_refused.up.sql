-- Refused tokens in the view of the events.

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
comment on column paddock.history.newest_token is 'The newest token of the lock when a token was refused.';
comment on column paddock.history.late is 'How long before the refusal the lease of the refused token had ended.';
comment on column paddock.history.held_by is 'Who held the lock when the token was refused.';
