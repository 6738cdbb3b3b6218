update leases
set id = $2, token = nextval('tokens'), expires_at = clock_timestamp() + $3
where name = $1 and (id is null or expires_at <= clock_timestamp())
returning token
