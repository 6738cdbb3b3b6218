-- The locks of which the sessions $1 have leases or waiters, at most $2.
select session, name from paddock.records where session = any ($1::bigint[]) and lease_id is not null and expires_at = $3
union
select session, name from paddock.parts where session = any ($1::bigint[]) and (place > 0 or expires_at = $3)
order by name
limit $2
