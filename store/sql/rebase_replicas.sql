-- Moves replicas to another clock.
update paddock.replicas set alive_until = $1::timestamptz + $2::interval
