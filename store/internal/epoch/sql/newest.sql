-- The greatest token among the newest events. What is visible here is durable, unlike the last token that was drawn.
-- In an entry the events follow the name and a number; the token is the seventh value of an event.
select coalesce(max((event.value ->> 6)::bigint), 0)
from (select entries from paddock.event_batches order by id desc limit 4) newest
cross join unnest(newest.entries) as entry
cross join json_array_elements(entry) with ordinality as event (value, ord)
where event.ord > 2
