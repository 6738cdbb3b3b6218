-- The lock's rows, the anchor first. A new name has one row, too.
select (select clock_timestamp()), n.name, coalesce(l.slot, 0), coalesce(l.revision, 0), coalesce(l.last_token, 0),
       coalesce(l.last_end, 0::smallint), coalesce(l.capacity, 0), coalesce(l.queued, 0), coalesce(l.sitting, 0),
       coalesce(l.changed_at, 'epoch'),
       l.lease_id, l.mode, l.holder, l.token, l.ttl_ms, l.grace_ms, l.max_hold_ms, l.acquired_at, l.expires_at, l.metadata,
       coalesce(l.place, 0), coalesce(l.attachment, 0), l.claim_by
from (values ($1::text)) as n (name)
left join paddock.locks l on l.name = n.name
order by l.slot
