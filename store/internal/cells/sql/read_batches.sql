-- The next $3 batches of events after the batch $1, up to the batch $2, each with its entries of the locks of the groups $4.
select id, at, array_to_json(array(select e from unnest(entries) as e where split_part(e ->> 0, ':', 1) = any ($4::text[])))::text
from paddock.event_batches
where id > $1::bigint and id <= $2::bigint
order by id
limit $3::bigint
