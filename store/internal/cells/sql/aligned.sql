-- Whether the ids of event batches are the position $1 modulo 64.
select s.seqincrement = 64 and q.last_value % 64 = $1::bigint
from pg_catalog.pg_sequence s, paddock.event_batch_ids q
where s.seqrelid = 'paddock.event_batch_ids'::regclass
