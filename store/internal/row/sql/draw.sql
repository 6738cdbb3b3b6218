-- Draws $1 fencing tokens, on a server that is recognized by its start time.
select pg_postmaster_start_time(), array(select nextval('paddock.fencing_tokens') from generate_series(1, $1::integer))
