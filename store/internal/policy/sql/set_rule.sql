-- Sets the rule of the scope $4. Returns when; nothing if the policy has changed.
with changed as (
{{.Counted}}
    returning clock_timestamp() as at
)
insert into paddock.rules (scope, max_ttl_ms, max_hold_ms, min_grace_ms, capacity, max_leases, set_by, set_at)
select $4::text, $5::bigint, $6::bigint, $7::bigint, $8::integer, $9::integer, $10::text, at from changed
on conflict (scope) do update
set max_ttl_ms = excluded.max_ttl_ms, max_hold_ms = excluded.max_hold_ms, min_grace_ms = excluded.min_grace_ms,
    capacity = excluded.capacity, max_leases = excluded.max_leases, set_by = excluded.set_by, set_at = excluded.set_at
returning set_at
