-- The oldest $2 events after id $1, of which those older than $3 go. Returns the
-- greatest id that went and how many did.
with oldest as materialized (
    select id, at from paddock.events where id > $1 order by id limit $2
), gone as (
    delete from paddock.events
    where id in (select id from oldest where at < clock_timestamp() - $3::interval)
    returning id
)
select coalesce(max(id), 0), count(*) from gone
