-- Waiters on another clock: their calls, at replicas that live, end by themselves. $2 is
-- how long a call waits at most, $3 for how long its replica is taken to live, $4 how long
-- a place is kept.
update paddock.waiters
set joined_at   = least(joined_at, $1::timestamptz),
    until       = $1::timestamptz + $2::interval,
    alive_until = $1::timestamptz + $3::interval,
    kept_until  = $1::timestamptz + $2::interval + $4::interval,
    offered     = false
