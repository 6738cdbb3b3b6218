-- Records the end, as $2 says, of those of the sessions $1 that are over. Their rows are locked.
update paddock.sessions
set ended = $2::smallint, ended_at = expires_at + grace_ms * interval '1 millisecond'
where ref = any ($1::bigint[]) and ended = 0 and expires_at + grace_ms * interval '1 millisecond' <= clock_timestamp()
