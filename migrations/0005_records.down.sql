drop sequence paddock.event_batch_ids;
drop table paddock.event_refs;
drop table paddock.event_batches;
drop table paddock.parts;
drop table paddock.records;
