-- This replica lives: $2 wait with it, $3 whether anybody follows events there.
insert into paddock.replicas as r (id, alive_until, waiting, watching)
values ($1, clock_timestamp() + $4::interval, $2, $3)
on conflict (id) do update
set alive_until = excluded.alive_until, waiting = excluded.waiting, watching = excluded.watching
