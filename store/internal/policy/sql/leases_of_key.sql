-- How many leases of locks whose names are from $1 to $2 (exclusive) count for the limit of the API key $3. Those that
-- are over count until that is recorded.
select (select count(*) from paddock.records where name >= $1 and name < $2 and lease_id is not null and rest ->> 'key' = $3)
     + (select count(*) from paddock.parts where name >= $1 and name < $2 and place = 0 and mode <= 3 and rest ->> 'key' = $3)
