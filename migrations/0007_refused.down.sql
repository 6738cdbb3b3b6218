-- The view without refused tokens. A view cannot lose columns, so it is created again.

drop view paddock.history;
create view paddock.history as
select b.id * 4096 + (e.event ->> 0)::bigint as id,
       b.at + (e.event ->> 9)::bigint * interval '1 microsecond' as at,
       (n.entry ->> 0) collate "C" as name,
       (e.event ->> 2)::bigint as revision,
       (array['granted', 'released', 'expired', 'revoked', 'queued', 'dequeued', 'withdrawn', 'metadata_updated']
           )[(e.event ->> 3)::integer] as kind,
       (e.event ->> 6)::bigint as token,
       e.event ->> 5 as holder,
       (array['exclusive', 'shared', 'permit'])[(e.event ->> 4)::integer] as mode,
       (e.event ->> 1)::integer as slot,
       (e.event ->> 7)::bigint as place,
       e.event ->> 8 as reason
from paddock.event_batches b
cross join lateral unnest(b.entries) as n (entry)
cross join lateral json_array_elements(n.entry) with ordinality as e (event, ord)
where e.ord > 2;
comment on view paddock.history is
    'The events, one row each, in the order of their ids. Reads all of paddock.event_batches.';
comment on column paddock.history.token is 'The fencing token of the lease; 0 for a waiter.';
comment on column paddock.history.place is 'The place in the queue, if the event is about one; else 0.';
