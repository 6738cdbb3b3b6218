-- The newest epoch, when it began and why, and when the oldest event that is kept happened. Batches that came with a
-- group from another cell have older ids.
select clock_timestamp() as now, e.epoch, e.began_at, e.reason, e.timeline, e.quorum, e.closed_until,
       least((select at from paddock.event_batches order by id limit 1),
             (select min(at) from paddock.event_batches where moved)) as oldest_event
from paddock.epochs e
order by e.epoch desc
limit 1
