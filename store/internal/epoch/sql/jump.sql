-- Moves the ids of event batches, and with them tokens, far beyond all known ones, so that event ids and tokens that the
-- database has lost are not issued again. $1 is the greatest batch that the caller knows, $2 the distance. An id stays what it
-- is modulo 64, which says by which cell it was drawn.
select setval('paddock.event_batch_ids', last_value + (greatest($1::bigint - last_value, 0) + $2::bigint + 63) / 64 * 64)
from paddock.event_batch_ids
