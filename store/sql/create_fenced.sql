-- A key never written gets a row to lock; version 0 says that there is nothing in it.
insert into paddock.fenced (key, lock, token, version, value, written_at)
values ($1, $2, 0, 0, 'null', clock_timestamp())
on conflict do nothing
