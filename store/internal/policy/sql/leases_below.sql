-- How many leases there are of locks whose names are from $1 to $2 (exclusive), and of the locks $3; and the database's
-- clock. Those that are over do not count, whether or not that is recorded; nor do intentions.
select count(*), clock_timestamp()
from paddock.leases
where (name >= $1 and name < $2 or name = any ($3::text[])) and state <> 'expired' and mode not like 'intention%'
