-- Creates a row to lock for a new key. Version 0 means that there is no value.
insert into paddock.fenced (key, lock, token, version, value, written_at)
values ($1, $2, 0, 0, 'null', clock_timestamp())
on conflict do nothing
