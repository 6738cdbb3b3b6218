update leases set id = null where name = $1 and id = $2
