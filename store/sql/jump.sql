-- Tokens and ids of events that the history has lost are not given again: both
-- sequences go on far above what is known. $1 and $2 are the greatest token that the
-- caller knows of, and how far to go.
select setval('paddock.fencing_tokens', greatest((select last_value from paddock.fencing_tokens), $1::bigint) + $2::bigint),
       setval('paddock.event_ids', (select last_value from paddock.event_ids) + $2::bigint)
