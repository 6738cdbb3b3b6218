-- Draws more numbers for a decision. The mark is below them already.
select array(select nextval('paddock.fencing_tokens') from generate_series(1, $1::integer)),
       array(select nextval('paddock.event_ids') from generate_series(1, $2::integer))
