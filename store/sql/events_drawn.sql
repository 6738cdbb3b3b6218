-- The greatest event id that was drawn. Read before sql/events_open.sql.
select case when is_called then last_value else 0 end from paddock.event_ids
