-- The first batch that is not older than $1, zero if that is the first one of the table; the first batch that is not
-- older than $2, zero if there is none; the database's time; and the newest pruned event.
--
-- A binary search in the ids, whose order is about that of the instants: there is no index on these, which would cost
-- each commit more than it saves here. Between low and high is always the first batch that is not older. Ids that no
-- batch has do not matter, since each step looks for the next batch from the middle on.
with recursive search (edge, at, low, high) as (
    select edge, at, 0::bigint, (select coalesce(max(id), 0) + 1 from paddock.event_batches)
    from (values (1, $1::timestamptz), (2, $2::timestamptz)) as edges (edge, at)
    union all
    select s.edge, s.at,
           case when b.at < s.at then least(b.id + 1, s.high) else s.low end,
           case when b.at < s.at then s.high else (s.low + s.high) / 2 end
    from search s
    left join lateral (
        select id, at from paddock.event_batches where id >= (s.low + s.high) / 2 order by id limit 1
    ) b on true
    where s.low < s.high
)
select (select low from search where edge = 1 and low = high),
       coalesce((select min(id) from paddock.event_batches
                 where id >= (select low from search where edge = 2 and low = high)), 0),
       clock_timestamp(),
       (select pruned from paddock.horizon)
