-- How the leases that the batch asks about ended, those that did.
select id, at, name, slot, revision, kind, token, holder, mode, reason, lease_ref
from paddock.events
where lease_ref = any ($1::bigint[])
