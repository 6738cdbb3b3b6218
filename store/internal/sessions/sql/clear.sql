-- Clears those of the sessions $1 that ended longer than $2 ago.
update paddock.sessions set cleared = true where ref = any ($1::bigint[]) and ended <> 0 and ended_at < clock_timestamp() - $2::interval
