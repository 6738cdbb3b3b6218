-- Waits for the decisions that are being written, and excludes others. Reads go on. Decisions queue behind it while it
-- waits, so the transaction's lock_timeout must be some milliseconds.
lock table paddock.records in exclusive mode
