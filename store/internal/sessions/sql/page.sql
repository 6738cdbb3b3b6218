-- A page of sessions that have not ended: $2 at most, after the session $1, of the holder $3 unless that is empty.
select ref
from paddock.sessions
where ref > $1 and not cleared and ended = 0 and ($3::text = '' or holder = $3)
order by ref
limit $2
