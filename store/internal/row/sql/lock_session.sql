-- The session $1, whose row is locked until the transaction ends.
select {{.Session}} from paddock.sessions where ref = $1 for no key update
