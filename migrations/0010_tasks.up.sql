-- Finds the waiters of a task and of its parts, when a replica looks for deadlocks. It is small: waiters are few, and
-- most leases never waited.

create index parts_waiting_tasks on paddock.parts ((rest ->> 'task') collate "C") where place > 0 and rest ->> 'task' is not null;
