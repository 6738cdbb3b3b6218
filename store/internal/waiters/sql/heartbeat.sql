-- Heartbeat of the replica $1: it is alive for $4, $2 calls wait on it, and $3 tells whether it has subscribers of
-- events. $5 connections and $6 streams of clients are open at its process, which has run for $7, on the host $8, in the
-- version $9.
insert into paddock.replicas (id, alive_until, waiting, watching, connections, streams, started_at, beat_at, host, version)
values ($1, clock_timestamp() + $4::interval, $2, $3, $5, $6, clock_timestamp() - $7::interval, clock_timestamp(), $8, $9)
on conflict (id) do update
set alive_until = excluded.alive_until, waiting = excluded.waiting, watching = excluded.watching,
    connections = excluded.connections, streams = excluded.streams, beat_at = excluded.beat_at
