-- Locks the rows of the sessions that have a lease of the lock, in the order of refs, until the transaction ends.
select ref
from paddock.sessions
where ref in (select session from paddock.records where name = $1
              union all
              select session from paddock.parts where name = $1 and place = 0)
order by ref
for no key update
