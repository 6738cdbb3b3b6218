-- Excludes the changes of sessions: a session that a heartbeat did not find has its TTL from after that heartbeat.
lock table paddock.sessions in exclusive mode
