-- The epochs before the newest one, the newest first.
select epoch as number, began_at, reason
from paddock.epochs
order by epoch desc
offset 1
limit 9
