-- Locks the rows in the order of the names, so that no two transactions wait for each other. Until this transaction
-- ends, each row stays at its ctid, and its xmin is the transaction that wrote it. The lateral sub-select forces one
-- index look-up a name, whatever the planner assumes about the table.
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
