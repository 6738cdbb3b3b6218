update leases
set expires_at = clock_timestamp() + $3
where name = $1 and id = $2 and expires_at > clock_timestamp()
