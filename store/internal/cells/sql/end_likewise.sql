-- Ends the sessions as $1, rows of another cell, says of them.
update paddock.sessions s
set ended = n.ended, ended_at = least(n.ended_at, clock_timestamp()), reason = n.reason, revoked_by = n.revoked_by,
    skip_grace = n.skip_grace, cleared = false
from json_populate_recordset(null::paddock.sessions, $1::json) n
where s.ref = n.ref and s.ended = 0
