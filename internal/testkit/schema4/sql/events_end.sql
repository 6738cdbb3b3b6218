-- The id up to which events are committed or pruned, and the number of the newest epoch. Read before
-- sql/events_open.sql.
--
-- The sequence's last_value is no bound, since it is not durable. Refused calls draw ids and roll back without a
-- flush, so a crash sets the sequence back behind cursors that were handed out, and readers would miss the next
-- events.
select greatest((select max(id) from paddock.events), (select pruned from paddock.horizon), 0),
       (select max(epoch) from paddock.epochs)
