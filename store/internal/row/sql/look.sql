-- Reads the locks of the names, in order, and creates those of $2 that are missing{{if .Lock}}, and locks their rows: in the
-- order of names, so that no two transactions wait for each other{{end}}. The lateral sub-select forces one index
-- look-up a name, whatever the planner assumes about the table. A lock that another session creates at this moment is
-- not returned. If the policy is another one than that of the epoch $3 after $4 changes, nothing is created: a command may
-- be refused in the present one. The epoch 0: whatever the policy is. Parts of a record that was deleted by hand go when it is
-- made again.
with found as (
    select r.*
    from unnest($1::text[]) with ordinality as n (name, ord)
    cross join lateral (
        select {{.Record}}, last_event, ctid as tid, xmin as xmin
        from paddock.records
        where records.name = n.name
        {{if .Lock}}for update{{else}}offset 0{{end}}
    ) r
    order by n.ord
), made as (
    insert into paddock.records (name)
    select n.name
    from unnest($2::text[]) as n (name)
    where case when (select count(*) from found) < cardinality($1::text[])
               then (select $3::bigint = 0 or epoch = $3 and policy = $4 from paddock.epochs order by epoch desc limit 1) end
      and not exists (select from paddock.records r where r.name = n.name)
    order by n.name
    on conflict do nothing
    returning {{.Record}}, last_event, ctid as tid, xmin as xmin
), cleared as (
    delete from paddock.parts p
    using made
    where p.name = made.name
)
select * from found
union all
select * from made
