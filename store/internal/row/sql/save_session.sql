-- Writes a session that is there. No column that a heartbeat changes has an index.
update paddock.sessions
set {{.SessionAssignments}}, skip_grace = sessions.skip_grace or n.skips
from (select {{.SessionPlain}}, ${{.AfterSession}}::boolean as skips) n
where sessions.ref = n.ref
