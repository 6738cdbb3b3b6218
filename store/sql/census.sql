-- A stretch of anchors in name order: in how many milliseconds the lease of each
-- is over, if it has one, and whether it has been free for longer than $3.
select name, lease_id is not null,
       coalesce(extract(epoch from expires_at - clock_timestamp()) * 1000 + grace_ms, 0)::double precision,
       lease_id is null and queued = 0 and changed_at < clock_timestamp() - $3::interval
from paddock.locks
where name > $1 and slot = 0
order by name
limit $2
