-- The smallest mark of an open transaction, null if there is none: events of later batches may be missing. A mark is
-- the key of an advisory lock, $1 and a batch id, which $2 selects.
select min((classid::bigint << 32 | objid::bigint) & $2::bigint)
from pg_locks
where locktype = 'advisory' and objsubid = 1 and granted
  and database = (select oid from pg_database where datname = current_database())
  and classid::bigint >> 16 = $1::bigint >> 48
