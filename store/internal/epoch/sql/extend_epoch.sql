-- Records the length of the longest lease, $1 milliseconds, which was unknown when the newest epoch started. Grants
-- are paused for that long unless no lease can be lost.
update paddock.epochs
set longest_ms   = $1::bigint,
    closed_until = case
        when quorum then closed_until
        else greatest(closed_until, began_at + $1::bigint * interval '1 millisecond')
    end
where epoch = (select max(epoch) from paddock.epochs) and longest_ms < $1::bigint
