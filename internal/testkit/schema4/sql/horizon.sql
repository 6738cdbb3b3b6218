-- What a cursor at $1 may have missed: the id up to which events were pruned, and the nearest ids on both sides of
-- the cursor, zero for none. A new epoch continues with far greater ids, see sql/jump.sql.
select pruned,
       coalesce((select max(id) from paddock.events where id <= $1), 0),
       coalesce((select min(id) from paddock.events where id > $1), 0)
from paddock.horizon
