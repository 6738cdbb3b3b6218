-- Those of the sessions $1 that have ended, and those that there are not: they ended so long ago that they were deleted.
select w.ref
from unnest($1::bigint[]) as w (ref)
left join paddock.sessions s on s.ref = w.ref
where s.ref is null or s.ended <> 0
