-- The batches with the last events of one lock before id $3, newest first, each with the lock's entry; there may be
-- batches with later events before them. $2 is the lock's name, $1 its key in paddock.event_refs. more tells whether
-- there may be further ones.
--
-- As in sql/history.sql, the walk goes back from entry points: the last $4 references of the lock before $3, and the
-- first one after it, or else the lock's newest event. Each walk ends at the entry point below. If there are further
-- references, the lowest of these only ends the walk of the one above it. Each step goes to a lower id, and a walk has at
-- most 10,000 steps.
with recursive refs as materialized (
    select r.id / 4096 as batch
    from paddock.event_refs r
    cross join lateral (
        select from paddock.event_batches b
        cross join unnest(b.entries) as e (entry)
        where b.id = r.id / 4096 and e.entry ->> 0 = $2::text
        limit 1
    ) own
    where r.key = $1::bigint and r.id < $3::bigint
    order by r.id desc
    limit $4::bigint
), above as materialized (
    select r.id / 4096 as batch
    from paddock.event_refs r
    cross join lateral (
        select from paddock.event_batches b
        cross join unnest(b.entries) as e (entry)
        where b.id = r.id / 4096 and e.entry ->> 0 = $2
        limit 1
    ) own
    where r.key = $1 and r.id >= $3
    order by r.id
    limit 1
), entry_points as (
    select batch, lag(batch) over (order by batch) as below
    from (
        select batch from refs
        union
        select batch from above
        union
        select last_event from paddock.records where name = $2 and not exists (select from above)
    ) found
), walk as (
    select null::bigint as id, null::timestamptz as at, null::json as entry, batch as previous,
           coalesce(below, -1) as below, 0 as step
    from entry_points
    where below is not null or (select count(*) from refs) < $4
    union all
    select b.id, b.at, b.entry,
           case when b.entry ->> 1 ~ '^[0-9]{1,14}$'
                then case when (b.entry ->> 1)::bigint < b.id then (b.entry ->> 1)::bigint else -1 end else -1 end,
           w.below, w.step + 1
    from walk w
    cross join lateral (
        select b.id, b.at, e.entry
        from paddock.event_batches b
        cross join unnest(b.entries) as e (entry)
        where b.id = w.previous and w.previous > w.below and w.step < 10000 and e.entry ->> 0 = $2
        limit 1
    ) b
)
select id, at, array[entry] as entries, (select count(*) from refs) = $4 as more
from walk
where id is not null
order by id desc
