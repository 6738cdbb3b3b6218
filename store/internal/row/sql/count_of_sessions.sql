-- How many leases and places each of the sessions $1 has, intentions (modes above 3) apart. A grant that is not claimed yet is a lease.
select session, count(*) filter (where place = 0), count(*) filter (where place > 0)
from (
    select session, 0 as place from paddock.records where session = any ($1::bigint[]) and mode <= 3 and expires_at = $2
    union all
    select session, place
    from paddock.parts
    where session = any ($1::bigint[]) and mode <= 3 and (place = 0 and expires_at = $2 or place > 0 and not unclaimed)
) l
group by session
