drop table paddock.horizon;
alter table paddock.events drop column place;
drop table paddock.replicas;
drop table paddock.waiters;
delete from paddock.locks where slot > 0;
update paddock.locks
set capacity = 0, queued = 0
where slot = 0 and (capacity > 0 or queued > 0);
update paddock.locks
set lease_id = null, mode = null, holder = null, token = null, ttl_ms = null, grace_ms = null, max_hold_ms = null,
    acquired_at = null, expires_at = null, metadata = null
where slot = 0 and claim_by is not null;
alter table paddock.locks drop column claim_by, drop column attachment, drop column place, drop column sitting;
