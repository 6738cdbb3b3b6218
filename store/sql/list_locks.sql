-- A page of anchors from $1 (exclusive), or from $2 (inclusive) to $3 (exclusive),
-- whichever begins later. An empty $3 or $4 stands for all; $5 to $7 say which
-- phases are wanted.
select now.at, l.name, l.revision, l.last_token, l.last_end, l.changed_at,
       l.lease_id, l.mode, l.holder, l.token, l.ttl_ms, l.grace_ms, l.max_hold_ms, l.acquired_at, l.expires_at, l.metadata
from (select clock_timestamp() as at offset 0) as now
cross join lateral (
    select * from paddock.locks
    where slot = 0 and name > $1 and name >= $2 and ($3 = '' or name < $3)
      and ($4 = '' or holder = $4 and expires_at + grace_ms * interval '1 millisecond' > now.at)
      and case when lease_id is null or expires_at + grace_ms * interval '1 millisecond' <= now.at then $5::boolean
               when expires_at > now.at then $6::boolean
               else $7::boolean end
    order by name
    limit $8
) l
order by l.name
