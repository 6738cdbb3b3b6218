-- The newest batch of events that is committed or pruned, and the number of the newest epoch. Read before
-- sql/marks.sql.
--
-- The last value of the sequence is no bound, since it is not durable: a crash sets it back behind cursors that were
-- given to readers, and they would miss the next events.
select greatest((select max(id) from paddock.event_batches), (select pruned / 4096 from paddock.horizon), 0),
       (select max(epoch) from paddock.epochs)
