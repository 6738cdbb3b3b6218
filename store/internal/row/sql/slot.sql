-- The lease in a slot from 1 on. That in slot 1 may be in the lock's own row, and one of several permits is at its first
-- slot.
select {{.Part}} from paddock.parts where name = $1 and slot = $2 and place = 0
union all
select {{.Part}} from paddock.parts
where name = $1 and slot between 1 and $2 - 1 and place = 0 and $2::text = any (string_to_array(rest ->> 'slots', ' '))
union all
select name, 1, 0, false, token, 0, 0, {{.Lease}} from paddock.records
where name = $1 and mode > 1 and ($2 = 1 or $2::text = any (string_to_array(rest ->> 'slots', ' ')))
