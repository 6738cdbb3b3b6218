-- The smallest mark of a transaction that may still write events, if there is one: the keys of the advisory locks
-- that sql/draw.sql takes.
select min((classid::bigint << 32 | objid::bigint) & $2::bigint)
from pg_locks
where locktype = 'advisory' and objsubid = 1 and granted
  and database = (select oid from pg_database where datname = current_database())
  and classid::bigint >> 16 = $1::bigint >> 48
