-- Deletes those of the first $2 events after id $1 that are older than $3, and records up to which id events were
-- pruned. Returns that id and the number of deleted events.
with first as materialized (
    select id, at < clock_timestamp() - $3::interval as old
    from paddock.events
    where id > $1
    order by id
    limit $2
), gone as (
    delete from paddock.events where id in (select id from first where old) returning id
), horizon as (
    update paddock.horizon set pruned = greatest(pruned, (select max(id) from gone))
    where exists (select from gone)
)
select coalesce((select min(id) - 1 from first where not old), (select max(id) from first), $1::bigint),
       (select count(*) from gone)
