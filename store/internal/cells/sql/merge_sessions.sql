-- Writes the sessions $1 of another cell. One that is here is used in the same cells, and has ended if it has ended in either.
insert into paddock.sessions as s
select * from json_populate_recordset(null::paddock.sessions, $1::json)
on conflict (ref) do update
set cells = (s.cells & 9223372036854775807) | excluded.cells,
    ended = case when s.ended <> 0 then s.ended else excluded.ended end,
    ended_at = case when s.ended <> 0 then s.ended_at else excluded.ended_at end,
    reason = case when s.ended <> 0 then s.reason else excluded.reason end,
    ended_by = case when s.ended <> 0 then s.ended_by else excluded.ended_by end,
    ended_by_id = case when s.ended <> 0 then s.ended_by_id else excluded.ended_by_id end,
    ended_in = case when s.ended <> 0 then s.ended_in else excluded.ended_in end,
    skip_grace = case when s.ended <> 0 then s.skip_grace else excluded.skip_grace end
