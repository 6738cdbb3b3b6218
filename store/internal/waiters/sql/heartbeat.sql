-- Heartbeat of the replica $1: it is alive for $4, $2 calls wait on it, and $3 tells whether it has subscribers of
-- events.
insert into paddock.replicas (id, alive_until, waiting, watching)
values ($1, clock_timestamp() + $4::interval, $2, $3)
on conflict (id) do update
set alive_until = excluded.alive_until, waiting = excluded.waiting, watching = excluded.watching
