-- Locks with the leases that are parts{{if .Queue}}, and waiters{{end}}, of one moment, in order: from name $1
-- (exclusive) or $2 (inclusive), whichever is greater, to $3 (exclusive). $5 leaves out locks that have neither a lease
-- in their own row nor parts. The column after those of the record is how many waiters wait for locks below it in a
-- tree: 4 and 5 are the modes of intentions{{if .Queue}}; it is zero here{{end}}.
select now.at, r.*, {{.PartOfRecord}}{{if .Queue}}, a.alive_until{{else}}, null::timestamptz{{end}}
from (select clock_timestamp() as at offset 0) as now
cross join lateral (
    select {{.Record}},
           {{if .Queue}}0::bigint{{else}}case when parts = 0 then 0 else (
               select count(*) from paddock.parts w where w.name = records.name and w.slot = 0 and w.mode in (4, 5)
           ) end{{end}} as below
    from paddock.records
    where name > $1 and name >= $2 and name < $3 and (not $5 or lease_id is not null or parts > 0)
    order by name
    limit $4
) r
left join paddock.parts p on p.name = r.name{{if not .Queue}} and p.slot > 0{{end}}{{if .Queue}}
left join paddock.replicas a on a.id = p.replica{{end}}
order by r.name, p.slot, p.place
