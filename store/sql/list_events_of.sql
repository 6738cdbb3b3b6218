-- A statement of its own, so that its plan is a walk along the lock's events.
select id, at, name, slot, revision, kind, token, holder, mode, reason, place, 0::bigint
from paddock.events
where id > $1 and id <= $2 and name = $3
order by name, id
limit $4
