-- Views for operators: the leases, the waiters and the events. They show no lease_id, which is a secret.

create view paddock.leases as
select l.name, l.slot, l.holder, (array['exclusive', 'shared', 'permit'])[l.mode] as mode, l.token, l.acquired_at, l.expires_at,
       l.ttl_ms * interval '1 millisecond' as ttl, r.grace,
       case when coalesce(r.claim_by, l.expires_at + r.grace) <= statement_timestamp() then 'expired'
            when r.claim_by is not null then 'unclaimed'
            when l.ttl_ms = 0 then 'revoked'
            when l.expires_at > statement_timestamp() then 'held'
            else 'grace' end as state,
       (l.rest ->> 'metadata')::json as metadata
from (
    select name, 0 as slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest
    from paddock.records
    where lease_id is not null
    union all
    select name, slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest
    from paddock.parts
    where place = 0
) l
cross join lateral (
    select coalesce((l.rest ->> 'grace')::bigint, 0) * interval '1 millisecond' as grace,
           timestamptz '1970-01-01 00:00:00+00' + (l.rest ->> 'claim_by')::bigint * interval '1 microsecond' as claim_by
) r;
comment on view paddock.leases is 'The leases, one row each.';
comment on column paddock.leases.slot is 'The slot of a shared lease or a permit, from 1 on; 0 for an exclusive lease.';
comment on column paddock.leases.state is
    'held; grace: expired, but its holder may renew it; revoked: only its grace is left; unclaimed: granted to a waiter '
    'whose replica has not confirmed it yet; expired: it is over, and no decision has recorded that yet.';

create view paddock.queue as
select name, place, holder, (array['exclusive', 'shared', 'permit'])[mode] as mode, acquired_at as joined_at,
       expires_at as waits_until, nullif(replica, 0) as replica, unclaimed
from paddock.parts
where place > 0;
comment on view paddock.queue is 'The waiters, one row each, in the order of name and place.';
comment on column paddock.queue.waits_until is 'When the waiting call ends, or has ended.';
comment on column paddock.queue.replica is 'The replica that serves the waiting call; null: no call waits at the place.';
comment on column paddock.queue.unclaimed is 'The waiter was granted the lock, and its replica has not confirmed it yet.';

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
