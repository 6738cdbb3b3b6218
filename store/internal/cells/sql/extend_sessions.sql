-- Gives the sessions $1 their whole length from now on, as an epoch does, except for those that have expired, which is $2.
-- They have leases and places here now, so those that have ended are cleared once more.
update paddock.sessions
set opened_at = least(opened_at, clock_timestamp()),
    ended_at = case when ended <> 0 then least(ended_at, clock_timestamp()) end,
    expires_at = case
        when ended <> $2::smallint then greatest(clock_timestamp() + greatest(ttl_ms, left_ms) * interval '1 millisecond',
            case when expires_at <= clock_timestamp() + greatest(ttl_ms, left_ms) * interval '1 millisecond' then expires_at end)
        else least(expires_at, clock_timestamp() - grace_ms * interval '1 millisecond')
    end,
    cleared = false
where ref = any ($1::bigint[])
