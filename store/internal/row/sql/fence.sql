-- Locks the lock's row and returns its newest token. No grant of this lock can be decided until this transaction
-- ends, so no write lands with a token that is stale by then. Writers take turns: if they shared the row lock, a
-- stream of writers would delay every renewal.
select token from paddock.records where name = $1 for no key update
