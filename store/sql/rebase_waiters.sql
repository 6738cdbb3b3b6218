-- Moves waiters to another clock. Their calls on live replicas end by themselves. $2 is the longest wait of a call,
-- $3 the time after which a silent replica counts as dead, $4 the time for which a place is kept.
update paddock.waiters
set joined_at   = least(joined_at, $1::timestamptz),
    until       = $1::timestamptz + $2::interval,
    alive_until = $1::timestamptz + $3::interval,
    kept_until  = $1::timestamptz + $2::interval + $4::interval,
    offered     = false
