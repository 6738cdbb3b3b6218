-- Which of the names nobody outside holds. It locks nothing for longer than itself.
select name
from paddock.locks
where name = any ($1::text[]) and slot = 0
for update skip locked
