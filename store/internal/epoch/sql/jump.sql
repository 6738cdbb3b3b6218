-- Moves the ids of event batches, and with them tokens, far beyond all known ones, so that event ids and tokens that the
-- database has lost are not issued again. $1 is the greatest batch that the caller knows, $2 the distance.
select setval('paddock.event_batch_ids', greatest(last_value, $1::bigint) + $2::bigint)
from paddock.event_batch_ids
