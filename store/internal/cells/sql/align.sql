-- Sets the sequence to the next value that is the position $1 modulo 64. Tokens are never drawn beside it.
select setval('paddock.event_batch_ids', $1::bigint + (greatest(last_value, 1) - $1::bigint + 63) / 64 * 64)
from paddock.event_batch_ids
