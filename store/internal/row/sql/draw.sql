-- Draws $1 fencing tokens.
select array(select nextval('paddock.fencing_tokens') from generate_series(1, $1::integer))
