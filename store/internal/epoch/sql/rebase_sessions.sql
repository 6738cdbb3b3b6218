-- Moves sessions to another clock, whose present is $1, or else when this statement runs: each has its whole TTL from then on,
-- or what was left of it when it was renewed with a shorter one, or the later end of a renewal since. So has one that is
-- closed or revoked, since the leases that it has left count until each is ended. One that was over at $4, the old clock's
-- last known time, or has ended by $2, which is expiry, stays over. $3 is added to the number of revoked leases: the holder
-- sees it grow, and finds out which leases are lost.
update paddock.sessions s
set opened_at = least(s.opened_at, now.at),
    revoked_leases = s.revoked_leases + $3::bigint,
    ended_at = case when s.ended <> 0 then least(s.ended_at, now.at) end,
    expires_at = case
        when s.ended <> $2::smallint and s.expires_at + s.grace_ms * interval '1 millisecond' > $4::timestamptz
            then greatest(now.at + greatest(s.ttl_ms, s.left_ms) * interval '1 millisecond',
                case when s.expires_at <= clock_timestamp() + greatest(s.ttl_ms, s.left_ms) * interval '1 millisecond' then s.expires_at end)
        else least(s.expires_at, now.at - s.grace_ms * interval '1 millisecond')
    end,
    cleared = false
from (select coalesce($1::timestamptz, clock_timestamp()) as at offset 0) now
where {{.Which}}
