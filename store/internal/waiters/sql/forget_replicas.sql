-- Deletes the replica $1, and replicas that have sent no heartbeat for $2.
delete from paddock.replicas where id = $1 or alive_until < clock_timestamp() - $2::interval
