-- The rows of a page of locks, each anchor before its slots: from name $1 (exclusive) or $2 (inclusive), whichever is
-- greater, to $3 (exclusive). An empty $3 or $4 matches all; $5 to $7 select states. Slots are read only for locks
-- that have any.
select now.at, r.name, r.slot, r.revision, r.last_token, r.last_end, r.capacity, r.queued, r.sitting, r.changed_at,
       r.lease_id, r.mode, r.holder, r.token, r.ttl_ms, r.grace_ms, r.max_hold_ms, r.acquired_at, r.expires_at, r.metadata,
       r.place, r.attachment, r.claim_by
from (select clock_timestamp() as at offset 0) as now
cross join lateral (
    select a.name
    from paddock.locks a
    where a.slot = 0 and a.name > $1 and a.name >= $2 and ($3 = '' or a.name < $3)
      and ($4 = '' or case when a.sitting = 0
               then a.holder = $4 and coalesce(a.claim_by, a.expires_at + a.grace_ms * interval '1 millisecond') > now.at
               else exists (select from paddock.locks s
                            where s.name = a.name and s.slot > 0 and s.holder = $4
                              and coalesce(s.claim_by, s.expires_at + s.grace_ms * interval '1 millisecond') > now.at) end)
      and case when (case when a.sitting = 0 then a.expires_at > now.at
                          else exists (select from paddock.locks s
                                       where s.name = a.name and s.slot > 0 and s.expires_at > now.at) end)
               then $6::boolean
               when (case when a.sitting = 0
                          then coalesce(a.claim_by, a.expires_at + a.grace_ms * interval '1 millisecond') > now.at
                          else exists (select from paddock.locks s
                                       where s.name = a.name and s.slot > 0
                                         and coalesce(s.claim_by, s.expires_at + s.grace_ms * interval '1 millisecond') > now.at) end)
               then $7::boolean
               else $5::boolean end
    order by a.name
    limit $8
) l
join paddock.locks r on r.name = l.name
order by r.name, r.slot
