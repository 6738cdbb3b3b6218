-- The newest pruned event, and the batches nearest to batch $1: the last one up to it and the first one after it, zero
-- for none. A new epoch continues with far greater ids.
select pruned,
       coalesce((select max(id) from paddock.event_batches where id <= $1::bigint), 0),
       coalesce((select min(id) from paddock.event_batches where id > $1), 0)
from paddock.horizon
