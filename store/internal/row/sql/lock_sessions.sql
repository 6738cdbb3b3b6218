-- The sessions $1, whose rows are locked until the transaction ends, in the order of refs.{{if .Ends}} It waits
-- for grants in the sessions that are being written, see swap.sql.{{end}}
select {{.Session}} from paddock.sessions where ref = any ($1::bigint[]) order by ref for {{if not .Ends}}no key {{end}}update
