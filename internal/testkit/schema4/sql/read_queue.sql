-- The waiters of the names, in order. A replica is alive until the time in its waiter's row or in its own row.
-- Replicas count as alive for at least $2, since an outage may have prevented their heartbeats.
select w.name, w.place, w.lease_id, w.mode, w.capacity, w.holder, w.ttl_ms, w.grace_ms, w.max_hold_ms, w.metadata, w.joined_at,
       w.attachment, w.replica, w.until,
       greatest(w.alive_until, r.alive_until, case when r.id is not null and $2::interval > interval '0' then clock_timestamp() + $2::interval end),
       w.kept_until, w.offered
from paddock.waiters w
left join paddock.replicas r on r.id = w.replica
where w.name = any ($1::text[])
order by w.name, w.place
