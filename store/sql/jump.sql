-- Moves both sequences far beyond all known numbers, so that tokens and event ids that the database has lost are not
-- issued again. $1 and $3 are the greatest token and event id that the caller knows, $2 is the distance.
select setval('paddock.fencing_tokens', greatest((select last_value from paddock.fencing_tokens), $1::bigint) + $2::bigint),
       setval('paddock.event_ids', greatest((select last_value from paddock.event_ids), $3::bigint) + $2::bigint)
