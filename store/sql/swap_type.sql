-- The type of the elements of swap.sql's array, and the start time of the server, by which a connection notices that
-- a proxy leads to another server.
select 'paddock.swap'::regtype::oid, pg_postmaster_start_time()
