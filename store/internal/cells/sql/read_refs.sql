-- The references to events of the locks of the groups $3, in batches after $1, up to $2.
select r.key, r.id
from paddock.event_refs r
join paddock.event_batches b on b.id = r.id / 4096
where r.id >= ($1::bigint + 1) * 4096 and r.id < ($2::bigint + 1) * 4096
  and exists (
      select from unnest(b.entries) as e, json_array_elements(e) with ordinality as v (event, ord)
      where split_part(e ->> 0, ':', 1) = any ($3::text[]) and case when ord > 2 then (event ->> 0)::bigint = r.id % 4096 end
  )
