-- Waits for the decisions that are being written, and excludes others. Reads go on.
lock table paddock.records in exclusive mode
