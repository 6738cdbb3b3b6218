-- Says that the group $4 leaves for the cell $5 since the generation $6. Returns a row; none if the policy has changed.
with changed as (
{{.Counted}}
    returning 1
)
insert into paddock.placement (group_name, cell, generation, state)
select $4::text, $5::text, $6::bigint, 'leaving' from changed
on conflict (group_name) do update
set cell = excluded.cell, generation = excluded.generation, state = excluded.state
returning true
