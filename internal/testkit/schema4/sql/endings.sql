-- How the leases of the batch ended, as far as events tell, the newest event of each lease last. Rows are found first
-- and sorted afterwards; otherwise the planner might walk all events in that order.
select *
from (
    select id, at, name, slot, revision, kind, token, holder, mode, reason, place, lease_ref
    from paddock.events
    where lease_ref = any ($1::bigint[])
    offset 0
) found
order by id
