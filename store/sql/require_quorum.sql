update paddock.epochs set quorum = $1
where epoch = (select max(epoch) from paddock.epochs)
returning current_setting('synchronous_standby_names') <> ''
