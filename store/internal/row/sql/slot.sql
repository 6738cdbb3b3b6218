-- The lease in a slot from 1 on.
select {{.Part}} from paddock.parts where name = $1 and slot = $2 and place = 0
