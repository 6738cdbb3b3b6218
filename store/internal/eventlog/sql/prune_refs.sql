-- Deletes the references to pruned events from $2 pages of the table, the first one is page $1. Returns how many were
-- deleted, and whether there are pages after these. There is no index on the id, which would cost each commit more
-- than these reads. References are stored about in the order of their ids, so those to delete are next to each other.
with gone as (
    delete from paddock.event_refs
    where ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $1 + $2::bigint)::tid
      and id <= (select pruned from paddock.horizon)
      and not exists (select from paddock.event_batches b where b.id = event_refs.id / 4096)
    returning 1
)
select (select count(*) from gone),
       pg_relation_size('paddock.event_refs') > ($1 + $2) * current_setting('block_size')::bigint
