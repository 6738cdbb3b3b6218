-- The greatest token among the newest events. What is visible here is durable.
select coalesce(max(token), 0) from (select token from paddock.events order by id desc limit 100) newest
