-- A separate statement, so that its plan walks the lock's events.
select id, at, name, slot, revision, kind, token, holder, mode, reason, place, 0::bigint
from paddock.events
where id > $1 and id <= $2 and name = $3
order by name, id
limit $4
