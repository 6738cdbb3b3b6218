-- The sessions $1.
select {{.Session}} from paddock.sessions where ref = any ($1::bigint[])
