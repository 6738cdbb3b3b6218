-- Reads the next $2 locks after the name $1, in the order of names. The columns: how many there are; the name of the
-- last; the locks that time alone will change within $4, and when; those that have been free for longer than $3; the
-- database's clock; and counts of them: locks that are held; locks in their grace; suspect locks; locks with waiters; all waiters; how
-- long the oldest waiter has waited; how long the oldest lease has lasted.
-- Of a lock with waiters or several leases, only a sweep tells when time will change it. A lease of a session, whose
-- expires_at is $5, ends with the session, or with its max hold. A lock is in its grace if it has leases, and all of them
-- have expired. It is suspect from the instant at which a decision has recorded that. A waiter that waits for several locks counts at
-- the first one that it asked for, and in a tree at none of those above: 4 and 5 are the modes of its intentions there.
select count(*),
       coalesce(max(name), ''),
       coalesce(array_agg(name) filter (where due < statement_timestamp() + $4::interval), '{}'),
       coalesce(array_agg(due) filter (where due < statement_timestamp() + $4::interval), '{}'),
       coalesce(array_agg(name) filter (where idle), '{}'),
       clock_timestamp(),
       count(*) filter (where held and not suspect),
       count(*) filter (where in_grace and not held and not suspect),
       count(*) filter (where suspect),
       count(*) filter (where places > 0),
       coalesce(sum(waiters), 0)::bigint,
       coalesce(statement_timestamp() - min(joined_at), interval '0'),
       coalesce(statement_timestamp() - min(acquired_at), interval '0')
from (
    select r.name, p.places, p.waiters, p.joined_at, least(o.acquired_at, p.acquired_at) as acquired_at,
           case when r.parts > 0 then statement_timestamp()
                when r.lease_id is not null and r.expires_at = $5::timestamptz and isfinite(r.acquired_at)
                    then r.acquired_at + paddock.duration(r.rest, 'max_hold')
                when r.lease_id is not null and isfinite(r.expires_at) and paddock.duration(r.rest, 'suspect') is null
                    then r.expires_at
           end as due,
           r.lease_id is null and r.parts = 0 and r.changed_at < statement_timestamp() - $3::interval
               and coalesce(paddock.instant(r.rest, 'closed_until') < statement_timestamp(), true) as idle,
           r.lease_id is not null and paddock.duration(r.rest, 'suspect') is not null or p.suspect as suspect,
           o.acquired_at is not null or p.acquired_at is not null as held,
           p.in_grace or r.lease_id is not null and o.acquired_at is null
                and r.expires_at + coalesce(paddock.duration(r.rest, 'grace'), interval '0') > statement_timestamp() as in_grace
    from (select * from paddock.records where name > $1 order by name limit $2) r
    cross join lateral (
        select case when r.lease_id is not null and r.expires_at > statement_timestamp() and isfinite(r.acquired_at) then r.acquired_at end as acquired_at
    ) o
    cross join lateral (
        select count(*) filter (where place > 0 and not unclaimed and mode < 4) as places,
               count(*) filter (where place > 0 and not unclaimed and name = split_part(
                   coalesce(rest ->> 'below', rest ->> 'set', name), ' ', 1)) as waiters,
               min(acquired_at) filter (where place > 0 and not unclaimed and isfinite(acquired_at)) as joined_at,
               min(acquired_at) filter (where place = 0 and expires_at > statement_timestamp() and isfinite(acquired_at)) as acquired_at,
               coalesce(bool_or(place = 0 and expires_at <= statement_timestamp()
                   and expires_at + coalesce(paddock.duration(rest, 'grace'), interval '0') > statement_timestamp()),
                   false) as in_grace,
               coalesce(bool_or(place = 0 and paddock.duration(rest, 'suspect') is not null), false) as suspect
        from paddock.parts
        where name = r.name and r.parts > 0
    ) p
) counted
