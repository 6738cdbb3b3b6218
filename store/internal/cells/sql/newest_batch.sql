-- The id of the newest batch of events that was drawn.
select last_value from paddock.event_batch_ids
