-- Deletes up to $1 batches that moved in from another cell and are older than $2: their ids say nothing of that. Returns how
-- many.
with gone as (
    delete from paddock.event_batches
    where id = any (array(
        select id from paddock.event_batches where moved and at < clock_timestamp() - $2::interval order by at limit $1::bigint))
    returning 1
)
select count(*) from gone
