-- Says of the groups $1 that they are in the cell $2 since the generation $3, in the state $4. Null for $5: they are pinned
-- as before.
insert into paddock.placement as p (group_name, cell, generation, state, pinned)
select g, $2::text, $3::bigint, $4::text, coalesce($5::boolean, false) from unnest($1::text[]) as g
on conflict (group_name) do update
set cell = excluded.cell, generation = excluded.generation, state = excluded.state, pinned = coalesce($5, p.pinned)
