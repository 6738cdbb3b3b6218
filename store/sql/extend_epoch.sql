-- The newest epoch began without knowing how long leases were granted for: $1, in
-- milliseconds. Where nothing can be lost only the length is noted.
update paddock.epochs
set longest_ms   = $1::bigint,
    closed_until = case when quorum then closed_until else greatest(closed_until, began_at + $1::bigint * interval '1 millisecond') end
where epoch = (select max(epoch) from paddock.epochs) and longest_ms < $1::bigint
