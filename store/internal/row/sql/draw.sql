-- Draws $1 fencing tokens on a server that is recognized by its start time: fewer if the sequence has no more, but at
-- least $2.
select pg_postmaster_start_time(), array(
    select nextval('paddock.fencing_tokens')
    from generate_series(1, greatest($2::bigint, least($1::bigint, $3::bigint - (select last_value from paddock.fencing_tokens))))
)
