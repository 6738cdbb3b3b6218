-- Deletes locks that are still free. This is safe because all names share one sequence of tokens.
delete from paddock.locks
where slot = 0 and name in (
    select name from paddock.locks
    where name = any ($1::text[]) and slot = 0
      and lease_id is null and queued = 0 and sitting = 0 and changed_at < clock_timestamp() - $2::interval
    order by name
    for update skip locked
)
