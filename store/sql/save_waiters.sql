-- Writes new places, and places whose call has changed.
insert into paddock.waiters (name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata, joined_at,
                             attachment, replica, until, alive_until, kept_until, offered)
select name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata::json, joined_at,
       attachment, replica, until, alive_until, kept_until, offered
from unnest($1::text[], $2::bigint[], $3::uuid[], $4::smallint[], $5::integer[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::text[], $11::timestamptz[], $12::bigint[], $13::bigint[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[], $17::boolean[])
    as n (name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata, joined_at,
          attachment, replica, until, alive_until, kept_until, offered)
on conflict (name, place) do update
set attachment  = excluded.attachment,
    replica     = excluded.replica,
    until       = excluded.until,
    alive_until = excluded.alive_until,
    kept_until  = excluded.kept_until,
    offered     = excluded.offered
