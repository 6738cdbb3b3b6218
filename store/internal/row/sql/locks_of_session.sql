-- The leases and the places of the session $1, at most $2, intentions (modes above 3) apart. A grant that is not claimed yet is a lease.
select name, mode, slot, slots, token, place
from (
    select name, mode, case when mode = 1 then 0 else 1 end as slot, coalesce(rest ->> 'slots', '') as slots, token, 0::bigint as place
    from paddock.records
    where session = $1 and mode <= 3 and expires_at = $3
    union all
    select name, mode, slot, coalesce(rest ->> 'slots', ''), token, place
    from paddock.parts
    where session = $1 and mode <= 3 and (place = 0 and expires_at = $3 or place > 0 and not unclaimed)
) l
order by name, place, slot
limit $2
