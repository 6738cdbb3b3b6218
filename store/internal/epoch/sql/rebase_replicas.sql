-- Moves replicas to another clock: they count as alive until $1, or longer if they say so.
update paddock.replicas set alive_until = $1
