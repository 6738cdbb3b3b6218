-- Moves replicas to another clock: they count as alive until $1.
update paddock.replicas set alive_until = $1
