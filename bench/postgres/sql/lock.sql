select from leases where name = $1 for update
