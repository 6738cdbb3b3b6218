-- Section tokens.

-- Section places.

-- Section constraints: what no decision survives is refused when it is written.

-- Section deadlocks.

-- Section database.
