-- Leases and waiters keep their tasks, which the previous release ignores.

drop index paddock.parts_waiting_tasks;
