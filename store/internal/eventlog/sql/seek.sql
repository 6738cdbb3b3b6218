-- The first batch that is not older than $1, zero if that is the first one of the table; the first batch that is not
-- older than $2, zero if there is none; the database's time; and the newest pruned event.
--
-- What moved in from another cell has ids of another order. It is left out, unless $3: then the first batch is not later than
-- the first of these that is not older than $1, and the second one is later than all of these that are older than $2.
--
-- A binary search in the ids, whose order is about that of the instants: there is no index on these, which would cost
-- each commit more than it saves here. Between low and high is always the first batch that is not older. Ids that no
-- batch has do not matter, since each step looks for the next batch from the middle on.
--
-- What moved in is looked for only if there is any, which the index tells: for a table without statistics, the planner
-- would expect that half of it has, and read all of it.
with recursive search (edge, at, low, high) as (
    select edge, at, 0::bigint, (select coalesce(max(id), 0) + 1 from paddock.event_batches)
    from (values (1, $1::timestamptz), (2, $2::timestamptz)) as edges (edge, at)
    union all
    select s.edge, s.at,
           case when b.at < s.at then least(b.id + 1, s.high) else s.low end,
           case when b.at < s.at then s.high else (s.low + s.high) / 2 end
    from search s
    left join lateral (
        select id, at from paddock.event_batches where id >= (s.low + s.high) / 2 and not moved order by id limit 1
    ) b on true
    where s.low < s.high
), moved as materialized (
    select id, at from paddock.event_batches
    where moved and $3::boolean and (select true from paddock.event_batches where moved order by at limit 1)
)
select least((select low from search where edge = 1 and low = high), (select min(id) from moved where at >= $1)),
       greatest(next.id, case when next.id > 0 then (select max(id) + 1 from moved where at < $2) end),
       clock_timestamp(),
       (select pruned from paddock.horizon)
from (
    select coalesce((select min(id) from paddock.event_batches
                     where id >= (select low from search where edge = 2 and low = high) and not moved), 0) as id
) next
