-- Declares the tree $1, or removes it unless $2 is set: if the trees are still those after $4 changes in the epoch $3,
-- on the server that started at $5, and no lock of the tree has a lease or a waiter. Makes each replica read the trees
-- again before it decides anything more. Returns when the tree was declared; nothing if it was not changed.
with changed as (
    update paddock.epochs
    set trees = trees + 1
    where epoch = $3::bigint and epoch = (select max(epoch) from paddock.epochs) and trees = $4::bigint
      and pg_postmaster_start_time() = $5::timestamptz
      and not exists (
{{.InUse}}
      )
    returning 1
), added as (
    insert into paddock.trees (root, declared_at)
    select $1::text, clock_timestamp() from changed where $2::boolean
    returning declared_at
), removed as (
    delete from paddock.trees using changed where root = $1 and not $2
    returning declared_at
)
select declared_at from added
union all
select declared_at from removed
