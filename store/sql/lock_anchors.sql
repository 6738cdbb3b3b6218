-- The names come in order, and the rows are locked in it: no two transactions can wait for
-- each other. Until this one ends, each row is where its ctid says; its xmin is the
-- transaction that wrote it. Nothing but one look-up a name can come of the lateral
-- sub-select, whatever the planner believes of the table.
select l.*
from unnest($1::text[]) with ordinality as n (name, place)
cross join lateral (
    select name, slot, revision, last_token, last_end, capacity, queued, sitting, changed_at,
           lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms, acquired_at, expires_at, metadata, place, attachment, claim_by,
           ctid, xmin
    from paddock.locks
    where locks.name = n.name and slot = 0
    for update
) l
order by n.place
