-- Records the operation of a fenced write, whose row is locked; writes no row if the operation was done before.
insert into paddock.fenced_operations (key, operation_id) values ($1, $2) on conflict do nothing
