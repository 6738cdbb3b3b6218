-- Locks of the tree $1 that have a lease or a waiter, which may be over.
select name
from paddock.records
where (name = $1 or name >= $1 || ':' and name < $1 || ';') and (lease_id is not null or parts > 0)
order by name
limit 1000
