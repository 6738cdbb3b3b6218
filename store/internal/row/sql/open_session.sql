-- Writes a new session, unless another transaction has just done so.
insert into paddock.sessions ({{.Session}})
values ({{.SessionValues}})
on conflict do nothing
returning ref
