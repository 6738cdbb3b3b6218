-- Writes a session that is there. No column that a heartbeat changes has an index.
update paddock.sessions
set {{.SessionAssignments}}
from (select {{.SessionPlain}}) n
where sessions.ref = n.ref
