-- This replica, if it is $1, and those that were not heard of for long.
delete from paddock.replicas where id = $1 or alive_until < clock_timestamp() - interval '1 hour'
