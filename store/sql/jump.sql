-- Tokens and ids of events that the history has lost are not given again: both
-- sequences go on far above what is known. $1 and $3 are the greatest token and the greatest id of an event that the
-- caller knows of, $2 is how far to go.
select setval('paddock.fencing_tokens', greatest((select last_value from paddock.fencing_tokens), $1::bigint) + $2::bigint),
       setval('paddock.event_ids', greatest((select last_value from paddock.event_ids), $3::bigint) + $2::bigint)
