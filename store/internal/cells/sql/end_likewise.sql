-- Ends the sessions as $1, rows of another cell, says of them.
update paddock.sessions s
set ended = n.ended, ended_at = least(n.ended_at, clock_timestamp()), reason = n.reason, ended_by = n.ended_by,
    ended_by_id = n.ended_by_id, ended_in = n.ended_in, skip_grace = n.skip_grace, cleared = false
from json_populate_recordset(null::paddock.sessions, $1::json) n
where s.ref = n.ref and s.ended = 0
