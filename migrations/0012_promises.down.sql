-- Section database.

-- Section deadlocks.

-- Section constraints.

-- Section places.

-- Section tokens.
