-- The newest token granted for the lock. Until this transaction ends no grant of
-- it can be decided, so that no write lands under a token that is stale by then.
-- Writers take turns: if they shared the row, as many as come would keep every
-- renewal waiting.
select last_token from paddock.locks where name = $1 and slot = 0 for no key update
