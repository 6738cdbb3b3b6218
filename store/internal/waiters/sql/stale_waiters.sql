-- Those of the given waiting calls that need not wait any more: their place is gone or has another call, they were
-- granted the lock, or the lock is free, and not reserved for a set that waits for other locks, too. There may be
-- thousands of calls for one lock. The lateral sub-selects force one index look-up each, whatever the planner assumes
-- about the tables.
with free as materialized (
    select n.name
    from (select distinct name from unnest($1::text[]) as n (name)) n
    cross join lateral (
        select from paddock.records r
        where r.name = n.name and r.lease_id is null
          and not exists (select from paddock.parts l where l.name = n.name and l.slot >= 1)
          and not coalesce((
              select w.rest ->> 'set' is not null
              from paddock.parts w
              where w.name = r.name and w.slot = 0 and w.attachment <> 0 and w.expires_at > clock_timestamp()
                and exists (select from paddock.replicas a where a.id = w.replica and a.alive_until > clock_timestamp())
              order by w.place
              limit 1
          ), false)
        offset 0
    ) r
)
select n.attachment
from unnest($1::text[], $2::bigint[], $3::bigint[]) as n (name, place, attachment)
left join lateral (
    select w.attachment, w.unclaimed
    from paddock.parts w
    where w.name = n.name and w.slot = 0 and w.place = n.place
    offset 0
) w on true
where w.attachment is distinct from n.attachment or w.unclaimed or n.name in (select name from free)
