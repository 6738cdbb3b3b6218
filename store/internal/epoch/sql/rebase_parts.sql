-- Moves the other leases to another clock like those, see sql/rebase_records.sql; and waiters, which
-- are in slot 0. The calls of waiters on live replicas end by themselves, at the latest at $3, the longest wait from
-- now on. $4 and $5 are until when their replicas count as alive, and until when their places are kept, both in
-- microseconds since 1970. $6 is the expires_at of the leases of sessions, $7 the old clock's last known time, and $8 and $9
-- are the names of the locks, as in sql/rebase_records.sql.
update paddock.parts p
set acquired_at = case
        when p.slot > 0 and p.expires_at = $6::timestamptz then least($1::timestamptz - greatest($7::timestamptz - p.acquired_at, interval '0'), $1)
        when p.slot > 0 and paddock.duration(p.rest, 'max_hold') > interval '0'
            then $1::timestamptz
                 - greatest(p.expires_at - coalesce(paddock.duration(p.rest, 'left'), p.ttl_ms * interval '1 millisecond')
                     - p.acquired_at, interval '0')
        else least(p.acquired_at, $1)
    end,
    expires_at = case
        when p.slot = 0 then $3::timestamptz
        when p.expires_at = $6::timestamptz then p.expires_at
        when p.expires_at + coalesce(paddock.duration(p.rest, 'grace'), interval '0') <= $7::timestamptz
            then $1 - coalesce(paddock.duration(p.rest, 'grace'), interval '0')
        else greatest($1 + coalesce(paddock.duration(p.rest, 'left'), p.ttl_ms * interval '1 millisecond'),
            case when p.expires_at <= clock_timestamp() + coalesce(paddock.duration(p.rest, 'left'), p.ttl_ms * interval '1 millisecond')
                then p.expires_at end)
    end,
    unclaimed = false,
    rest = case
        when p.slot = 0
            then (coalesce(p.rest::jsonb, '{}')
                  || jsonb_build_object('alive_until', $4::bigint, 'kept_until', $5::bigint))::json
        when p.rest ->> 'claim_by' is not null then (p.rest::jsonb || jsonb_build_object('claim_by', $2::bigint))::json
        else p.rest
    end
from unnest($8::text[], $9::text[]) as n (first, beyond)
where p.name >= n.first and p.name < n.beyond
