-- Up to 10 locks of the groups $3, with names as in sql/clear.sql, that are in a set with a lock of another group.
select distinct l.name
from unnest($1::text[], $2::text[]) as n (first, beyond)
cross join lateral (
    select name, rest from paddock.records where name >= n.first and name < n.beyond
    union all
    select name, rest from paddock.parts where name >= n.first and name < n.beyond
) l
cross join unnest(string_to_array(l.rest ->> 'set', ' ')) as s (name)
where split_part(s.name, ':', 1) <> all ($3::text[])
order by l.name
limit 10
