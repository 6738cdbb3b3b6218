-- The first $3 batches from $1 on, each with its entries of locks whose names begin with $2, until they have $4 entries.
-- The entries of batch $1 do not count, since the reader may have seen them. more tells whether batch $3 was reached.
select id, at, entries, more
from (
    select id, at, entries, count(*) over () = $3::bigint as more,
           sum(cardinality(entries)) filter (where id > $1::bigint)
               over (order by id rows between unbounded preceding and 1 preceding) as before
    from (
        select id, at,
               case when $2::text = '' then entries
                    else array(select entry from unnest(entries) as entry where starts_with(entry ->> 0, $2)) end as entries
        from paddock.event_batches
        where id >= $1
        order by id
        limit $3
    ) first
) counted
where before is null or before < $4::bigint
order by id
