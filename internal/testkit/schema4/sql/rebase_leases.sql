-- Moves leases to another clock: each has its whole TTL from $1 on. A lease that was over at the old clock's last
-- known time stays over. An unclaimed lease goes back to the queue. A maximum hold keeps the time that it has used.
update paddock.locks l
set acquired_at = case when l.max_hold_ms > 0 then $1::timestamptz - greatest(l.expires_at - l.ttl_ms * interval '1 millisecond' - l.acquired_at, interval '0')
                       else least(l.acquired_at, $1) end,
    expires_at  = case when l.expires_at + l.grace_ms * interval '1 millisecond' <= k.last then $1::timestamptz - l.grace_ms * interval '1 millisecond'
                       else $1::timestamptz + l.ttl_ms * interval '1 millisecond' end,
    claim_by    = case when l.claim_by is not null then $1 end,
    changed_at  = least(l.changed_at, $1)
from (select coalesce((select at from paddock.events order by id desc limit 1), '-infinity') as last) k
where l.lease_id is not null
