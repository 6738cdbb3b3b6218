-- How the leases that the batch asks about ended, those that did; the last of
-- what is known of each comes last.
select id, at, name, slot, revision, kind, token, holder, mode, reason, place, lease_ref
from paddock.events
where lease_ref = any ($1::bigint[])
order by id
