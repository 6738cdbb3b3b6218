-- After the rows are locked: the instant of the decision, and the numbers for it.
select clock_timestamp(),
       array(select nextval('paddock.fencing_tokens') from generate_series(1, $1::integer)),
       array(select nextval('paddock.event_ids') from generate_series(1, $2::integer))
