-- Deletes those of the first $2 batches after $1 that are older than $3, and records the newest event of them as
-- pruned. Returns the batch after which the next call begins, and the number of deleted batches. The last event of an
-- entry has its greatest number.
with first as materialized (
    select id, at < clock_timestamp() - $3::interval as old
    from paddock.event_batches
    where id > $1::bigint and not moved
    order by id
    limit $2::bigint
), gone as (
    delete from paddock.event_batches where id in (select id from first where old) returning id
), newest as (
    select b.id * 4096 + max(case when e.entry -> -1 ->> 0 ~ '^[0-9]{1,4}$' then (e.entry -> -1 ->> 0)::bigint else 4095 end) as event
    from paddock.event_batches b
    cross join unnest(b.entries) as e (entry)
    where b.id = (select max(id) from gone)
    group by b.id
), horizon as (
    update paddock.horizon set pruned = greatest(pruned, (select event from newest))
    where exists (select from gone)
)
select coalesce((select min(id) - 1 from first where not old), (select max(id) from first), $1),
       (select count(*) from gone)
