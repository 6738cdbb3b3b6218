-- Deletes up to 100 operations that are older than $1, in every fiftieth call on average: entries of deleted rows stay in
-- the index until the next vacuum, and each scan of the oldest rows reads them.
delete from paddock.fenced_operations where ctid = any (array(
    select ctid from paddock.fenced_operations
    where done_at < clock_timestamp() - $1::interval
    order by done_at
    limit case when random() < 0.02 then 100 else 0 end
    for update skip locked))
