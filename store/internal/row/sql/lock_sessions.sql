-- The sessions $1, whose rows are locked until the transaction ends, in the order of refs.
select {{.Session}} from paddock.sessions where ref = any ($1::bigint[]) order by ref for no key update
