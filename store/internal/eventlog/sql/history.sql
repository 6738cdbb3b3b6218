-- The batches with events of one lock, each with the lock's entry: with the first events after id $3, in the order of
-- their ids; or if $5 with the last events before id $3, newest first, and perhaps batches with later events before
-- them. $2 is the lock's name, $1 its key in paddock.event_refs. more tells whether there may be further ones.
--
-- Entry points are the $4 references of the lock next to $3, and one beyond them, if there is one: the lock's newest
-- event or, if $5, the first reference after $3. From each entry point the walk goes back from batch to batch until it
-- meets the entry point before it, or the end of the span. If $5, and there may be further ones, the lowest reference
-- only ends the walk of the one above it. A lock that was pruned left a reference to its last event, so the walks reach
-- the events of all its incarnations. Each step goes to a lower id, whatever the entry names, and a walk has at most
-- 10,000 steps, so it ends.
--
-- Another name may have the same key, so only batches with an entry of the lock count. The lateral subqueries force
-- one look-up a batch, whatever the planner assumes about the tables. Only one side of the first union is read.
with recursive refs as materialized (
    (
        select r.id / 4096 as batch
        from paddock.event_refs r
        cross join lateral (
            select from paddock.event_batches b
            cross join unnest(b.entries) as e (entry)
            where b.id = r.id / 4096 and e.entry ->> 0 = $2::text
            limit 1
        ) own
        where not $5::boolean and r.key = $1::bigint and r.id > $3::bigint
        order by r.id
        limit $4::bigint
    )
    union all
    (
        select r.id / 4096
        from paddock.event_refs r
        cross join lateral (
            select from paddock.event_batches b
            cross join unnest(b.entries) as e (entry)
            where b.id = r.id / 4096 and e.entry ->> 0 = $2
            limit 1
        ) own
        where $5 and r.key = $1 and r.id < $3
        order by r.id desc
        limit $4
    )
), above as materialized (
    select r.id / 4096 as batch
    from paddock.event_refs r
    cross join lateral (
        select from paddock.event_batches b
        cross join unnest(b.entries) as e (entry)
        where b.id = r.id / 4096 and e.entry ->> 0 = $2
        limit 1
    ) own
    where $5 and r.key = $1 and r.id >= $3
    order by r.id
    limit 1
), entry_points as (
    select batch, coalesce(lag(batch) over (order by batch), first.before) as before
    from (
        select batch from refs
        union
        select batch from above
        union
        select last_event from paddock.records
        where name = $2 and case when $5 then not exists (select from above) else (select count(*) from refs) < $4 end
    ) found
    cross join (
        select case when not $5 then ($3 + 1) / 4096 - 1 when (select count(*) from refs) < $4 then -1 end as before
    ) first
), walk as (
    select null::bigint as id, null::timestamptz as at, null::json as entry, batch as previous, before, 0 as step
    from entry_points
    where before is not null
    union all
    select b.id, b.at, b.entry,
           case when b.entry ->> 1 ~ '^[0-9]{1,14}$'
                then case when (b.entry ->> 1)::bigint < b.id then (b.entry ->> 1)::bigint else -1 end else -1 end,
           w.before, w.step + 1
    from walk w
    cross join lateral (
        select b.id, b.at, e.entry
        from paddock.event_batches b
        cross join unnest(b.entries) as e (entry)
        where b.id = w.previous and w.previous > w.before and w.step < 10000 and e.entry ->> 0 = $2
        limit 1
    ) b
)
select id, at, array[entry] as entries, (select count(*) from refs) = $4 as more
from walk
where id is not null
order by case when $5 then -id else id end
