-- What the elements of swap.sql's array are said to be; and since when the server runs, by
-- which that tells whether it is still the same: a proxy may lead a connection elsewhere.
select 'paddock.swap'::regtype::oid, pg_postmaster_start_time()
