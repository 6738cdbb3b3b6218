-- The newest token granted for the lock. Until this transaction ends no grant of
-- it can be decided, so that no write lands under a token that is stale by then.
select last_token from paddock.locks where name = $1 and slot = 0 for key share
