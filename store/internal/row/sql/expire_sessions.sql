-- Records the end of those of the sessions $1 that are over by the clock, on the server that started at $2, in the
-- epoch $3: a heartbeat that waits for the row finds the end. In the order of refs, so that no two of these statements
-- wait for each other. The swap that follows in the transaction may count losses of sessions with lesser refs: it and
-- another swap can wait for each other, until lock_timeout ends one or both; what was ended is repeated. The statement
-- may have waited for a heartbeat, so the row and the clock are read again when it is locked.
with over as materialized (
    select ref
    from paddock.sessions
    where ref = any ($1::bigint[]) and ended = 0 and expires_at + grace_ms * interval '1 millisecond' <= clock_timestamp()
      and pg_postmaster_start_time() = $2::timestamptz
      and (select epoch from paddock.epochs order by epoch desc limit 1) = $3::bigint
    order by ref
    for update
)
update paddock.sessions s
set ended = {{.Expired}}, ended_at = s.expires_at + s.grace_ms * interval '1 millisecond'
from over
where s.ref = over.ref
