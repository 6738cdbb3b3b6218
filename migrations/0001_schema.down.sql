drop view paddock.history, paddock.queue, paddock.closed, paddock.leases;
drop table paddock.fenced_operations, paddock.fenced, paddock.replicas, paddock.epochs, paddock.horizon, paddock.event_refs,
    paddock.event_batches, paddock.placement, paddock.cells, paddock.trees, paddock.freezes, paddock.rules, paddock.sessions, paddock.parts, paddock.records;
drop sequence paddock.event_batch_ids;
drop function paddock.refuse_earlier_policy, paddock.instant, paddock.duration, paddock.name_key, paddock.decided_too_late;
