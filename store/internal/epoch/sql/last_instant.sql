-- The last known instant of the clock of the newest epoch: the time of its newest event, or, if it has none, that of its
-- start. Batches that moved here have the time of another clock. So do those before the start, which are far below the
-- last one drawn: $1 is the least distance of which only a jump can be the cause. Too early an instant is safe.
select coalesce(
    (select at from (select id, at from paddock.event_batches where not moved order by id desc limit 1) b
     where b.id > s.last_value - $1::bigint),
    e.began_at)
from paddock.epochs e, paddock.event_batch_ids s
order by e.epoch desc
limit 1
