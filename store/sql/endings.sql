-- How the leases ended that the batch asks about, those that did; the last of
-- what is known of each comes last. They are found first and put in order then, or the
-- planner might walk through all events in that order.
select *
from (
    select id, at, name, slot, revision, kind, token, holder, mode, reason, place, lease_ref
    from paddock.events
    where lease_ref = any ($1::bigint[])
    offset 0
) found
order by id
