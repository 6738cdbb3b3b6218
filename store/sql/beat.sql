-- Heartbeat of this replica: $2 calls wait on it, and $3 tells whether it has subscribers of events.
insert into paddock.replicas as r (id, alive_until, waiting, watching)
values ($1, clock_timestamp() + $4::interval, $2, $3)
on conflict (id) do update
set alive_until = excluded.alive_until, waiting = excluded.waiting, watching = excluded.watching
