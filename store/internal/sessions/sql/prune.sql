-- Deletes sessions that ended longer than $1 ago, at most $2.
delete from paddock.sessions
where ref in (select ref from paddock.sessions where cleared and ended_at < clock_timestamp() - $1::interval limit $2)
