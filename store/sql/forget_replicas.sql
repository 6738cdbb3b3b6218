-- Deletes this replica, if it is $1, and replicas without a heartbeat for $2.
delete from paddock.replicas where id = $1 or alive_until < clock_timestamp() - $2::interval
