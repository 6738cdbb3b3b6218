-- The batches with the first events of one lock after id $3, each with the lock's entry. $2 is the lock's name, $1 its
-- key in paddock.event_refs. more tells whether there may be further ones.
--
-- Entry points are the first $4 references of the lock after $3. If there are no more, the lock's newest event is one,
-- too. From each entry point the walk goes back from batch to batch until it meets the entry point before it. A lock
-- that was pruned left a reference to its last event, so the walks reach the events of all its incarnations. Each step
-- goes to a lower id, whatever the entry names, and a walk has at most 10,000 steps, so it ends.
--
-- Another name may have the same key, so only batches with an entry of the lock count. The lateral subqueries force
-- one look-up a batch, whatever the planner assumes about the tables.
with recursive refs as materialized (
    select r.id / 4096 as batch
    from paddock.event_refs r
    cross join lateral (
        select from paddock.event_batches b
        cross join unnest(b.entries) as e (entry)
        where b.id = r.id / 4096 and e.entry ->> 0 = $2::text
        limit 1
    ) own
    where r.key = $1::bigint and r.id > $3::bigint
    order by r.id
    limit $4::bigint
), entry_points as (
    select batch, coalesce(lag(batch) over (order by batch), ($3 + 1) / 4096 - 1) as above
    from (
        select batch from refs
        union
        select last_event from paddock.records where name = $2 and (select count(*) from refs) < $4
    ) found
), walk as (
    select null::bigint as id, null::timestamptz as at, null::json as entry, batch as previous, above, 0 as step
    from entry_points
    union all
    select b.id, b.at, b.entry,
           case when b.entry ->> 1 ~ '^[0-9]{1,14}$'
                then case when (b.entry ->> 1)::bigint < b.id then (b.entry ->> 1)::bigint else -1 end else -1 end,
           w.above, w.step + 1
    from walk w
    cross join lateral (
        select b.id, b.at, e.entry
        from paddock.event_batches b
        cross join unnest(b.entries) as e (entry)
        where b.id = w.previous and w.previous > w.above and w.step < 10000 and e.entry ->> 0 = $2
        limit 1
    ) b
)
select id, at, array[entry] as entries, (select count(*) from refs) = $4 as more
from walk
where id is not null
order by id
