-- Declares the tree $4, or removes it unless $5 is set, if no lock of the tree has a lease or a waiter. Returns when the
-- tree was declared; nothing if it was not changed.
with changed as (
{{.Counted}}
      and not exists (
{{.InUse}}
      )
    returning 1
), added as (
    insert into paddock.trees (root, declared_at)
    select $4::text, clock_timestamp() from changed where $5::boolean
    returning declared_at
), removed as (
    delete from paddock.trees using changed where root = $4 and not $5
    returning declared_at
)
select declared_at from added
union all
select declared_at from removed
