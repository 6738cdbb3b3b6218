-- Reads the locks of the names, in order, and creates those that are missing{{if .Lock}}, and locks their rows: in the
-- order of names, so that no two transactions wait for each other{{end}}. The lateral sub-select forces one index
-- look-up a name, whatever the planner assumes about the table. A lock that another session creates at this moment is
-- not returned.
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
    from unnest($1::text[]) as n (name)
    where (select count(*) from found) < cardinality($1::text[])
      and not exists (select from paddock.records r where r.name = n.name)
    order by n.name
    on conflict do nothing
    returning {{.Record}}, last_event, ctid as tid, xmin as xmin
)
select * from found
union all
select * from made
