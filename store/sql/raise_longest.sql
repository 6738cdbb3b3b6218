-- Before a lease longer than any before is granted, its length is noted.
update paddock.epochs set longest_ms = $1::bigint
where epoch = (select max(epoch) from paddock.epochs) and longest_ms < $1::bigint
