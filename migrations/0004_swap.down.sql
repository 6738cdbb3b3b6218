alter table paddock.locks
    add constraint locks_name_check check (length(name) between 1 and 200),
    add constraint locks_slot_check check (slot >= 0),
    add constraint locks_capacity_check check (capacity between 0 and 1000),
    add constraint locks_queued_check check (queued >= 0),
    add constraint locks_sitting_check check (sitting >= 0);
drop type paddock.swap;
