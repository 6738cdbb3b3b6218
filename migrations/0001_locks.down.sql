drop table paddock.fenced;
drop table paddock.events;
drop table paddock.locks;
drop sequence paddock.event_ids;
drop sequence paddock.fencing_tokens;
