-- Requires a standby for each decision, or not. Returns whether the server waits for standbys.
update paddock.epochs set quorum = $1
where epoch = (select max(epoch) from paddock.epochs)
returning current_setting('synchronous_standby_names') <> ''
