-- How many leases there are of locks whose names are from $1 to $2 (exclusive), and of the locks $3; at most 1000 names of
-- those with leases that are over, which count until that is recorded; and the database's clock. Intentions do not count.
select count(*), (array_agg(distinct name) filter (where state = 'expired'))[:1000], clock_timestamp()
from paddock.leases
where (name >= $1 and name < $2 or name = any ($3::text[])) and mode not like 'intention%'
