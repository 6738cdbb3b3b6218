-- One row, also for a name never seen.
select clock_timestamp(), coalesce(l.name, n.name), coalesce(l.revision, 0), coalesce(l.last_token, 0), coalesce(l.last_end, 0::smallint),
       coalesce(l.changed_at, 'epoch'),
       l.lease_id, l.mode, l.holder, l.token, l.ttl_ms, l.grace_ms, l.max_hold_ms, l.acquired_at, l.expires_at, l.metadata
from (values ($1::text)) as n (name)
left join paddock.locks l on l.name = n.name and l.slot = 0
