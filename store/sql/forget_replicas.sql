-- This replica, if it is $1, and those that were not heard of for $2.
delete from paddock.replicas where id = $1 or alive_until < clock_timestamp() - $2::interval
