-- Writes the batches $1 at the instants $2 with the entries $3, as JSON. A batch that is here is one of this cell, which has
-- these entries, or one that moved in with other groups.
insert into paddock.event_batches as b (id, at, entries, moved)
select n.id, n.at, array(select json_array_elements(n.entries::json)), true
from unnest($1::bigint[], $2::timestamptz[], $3::text[]) as n (id, at, entries)
on conflict (id) do update
set entries = b.entries || array(
    select e from unnest(excluded.entries) as e
    where e ->> 0 not in (select own ->> 0 from unnest(b.entries) as own))
where b.moved
