update paddock.fenced
set lock = $2, token = $3, version = $4, value = $5, written_at = $6
where key = $1
