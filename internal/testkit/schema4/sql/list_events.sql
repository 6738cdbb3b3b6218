select id, at, name, slot, revision, kind, token, holder, mode, reason, place, 0::bigint
from paddock.events
where id > $1 and id <= $2 and name >= $3 and ($4 = '' or name < $4)
order by id
limit $5
