-- Locks with waiters, whose names are from $1 to $2 (exclusive), at most $3.
select distinct name from paddock.parts where place > 0 and name >= $1 and name < $2 limit $3
