-- The greatest token among the newest events, and the greatest id of an event: what is visible here is durable.
select coalesce(max(token), 0), coalesce(max(id), 0)
from (select id, token from paddock.events order by id desc limit 100) newest
