-- Pairs of locks, beginning with the locks $1: a lease of the first one ends only after a wait at the second one,
-- since that wait is of its task or of a part of it; or a waiter of the first one waits for the second one as well.
-- The locks of a deadlock are in a circle of such pairs. At most $2 pairs.
with recursive pairs (name, next) as (
    select '' collate "C", unnest($1::text[]) collate "C"
    union
    select r.next, n.name
    from pairs r
    cross join lateral (
        select w.name
        from (
            select rest ->> 'task' as task from paddock.records where name = r.next and lease_id is not null
            union
            select rest ->> 'task' from paddock.parts where name = r.next and place = 0
        ) l
        cross join lateral ( -- one branch for each condition: the planner may read all waiters for an OR of them
            select name from paddock.parts where place > 0 and (rest ->> 'task') collate "C" = l.task
            union all
            select name from paddock.parts
            where place > 0 and (rest ->> 'task') collate "C" > l.task || '.' and (rest ->> 'task') collate "C" < l.task || '/'
        ) w
        union
        select s.name
        from paddock.parts w
        cross join unnest(string_to_array(w.rest ->> 'set', ' ')) s (name)
        where w.name = r.next and w.place > 0 and s.name <> r.next
    ) n
)
select name, next from pairs where name <> '' limit $2
