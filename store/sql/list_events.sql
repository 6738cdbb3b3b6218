select id, at, name, slot, revision, kind, token, holder, mode, reason, 0::bigint
from paddock.events
where id > $1 and id <= $2 and ($3 = '' or name = $3) and name >= $4 and ($5 = '' or name < $5)
order by id
limit $6
