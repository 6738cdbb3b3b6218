-- A chunk of $2 locks in name order after $1. For each: when time alone may change it, null for never; and whether it
-- has been free for longer than $3. Of a lock with waiters or several leases, only a sweep tells. A lease of a session,
-- whose expires_at is $4, ends with the session, or with its max hold.
select name,
       case when parts > 0 then clock_timestamp()
            when lease_id is not null and expires_at = $4::timestamptz and isfinite(acquired_at)
                then acquired_at + paddock.duration(rest, 'max_hold')
            when lease_id is not null and isfinite(expires_at) then expires_at
       end,
       lease_id is null and parts = 0 and changed_at < clock_timestamp() - $3::interval
from paddock.records
where name > $1
order by name
limit $2
