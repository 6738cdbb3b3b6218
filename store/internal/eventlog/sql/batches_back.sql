-- The last batches up to $1, newest first, each with its entries of locks whose names begin with $2: at most $3
-- batches, and no further one after they have $4 bytes, as stored. more tells whether there may be further ones.
select id, at,
       case when $2::text = '' then entries
            else array(select entry from unnest(entries) as entry where starts_with(entry ->> 0, $2)) end as entries,
       more
from (
    select id, at, entries,
           count(*) over () = $3::bigint or id > min(id) over () as more,
           sum(pg_column_size(entries)) over (order by id desc rows between unbounded preceding and 1 preceding) as before
    from (
        select id, at, entries
        from paddock.event_batches
        where id <= $1::bigint
        order by id desc
        limit $3
    ) last
) counted
where before is null or before < $4::bigint
order by id desc
