-- The batches next to batch $1, it included: the following ones in the order of their ids, or if $5 the ones before,
-- newest first. Each has its entries of locks whose names begin with $2. At most $3 batches, and no further one after
-- they have $4 bytes, as stored. more tells whether there may be further ones. Only one side of the union is read. What
-- moved in from another cell is left out: it is in that cell's pages.
select id, at,
       case when $2::text = '' then entries
            else array(select entry from unnest(entries) as entry where starts_with(entry ->> 0, $2)) end as entries,
       more
from (
    select id, at, entries, place,
           count(*) over () = $3::bigint or place < max(place) over () as more,
           sum(pg_column_size(entries)) over (order by place rows between unbounded preceding and 1 preceding) as before
    from (
        (select id, at, entries, id as place from paddock.event_batches
         where not $5::boolean and id >= $1::bigint and not moved order by id limit $3)
        union all
        (select id, at, entries, -id from paddock.event_batches
         where $5 and id <= $1 and not moved order by id desc limit $3)
    ) next
) counted
where before is null or before < $4::bigint
order by place
