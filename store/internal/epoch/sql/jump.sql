-- Moves both sequences far beyond all known numbers, so that tokens and event ids that the database has lost are not
-- issued again. $1 and $3 are the greatest token and event batch that the caller knows, $2 and $4 the distances.
select setval('paddock.fencing_tokens', greatest(t.last_value, $1::bigint) + $2::bigint),
       setval('paddock.event_batch_ids', greatest(e.last_value, $3::bigint) + $4::bigint)
from paddock.fencing_tokens t, paddock.event_batch_ids e
