-- Fails with PD001 if a session of the leases and waiters whose names are as in sql/clear.sql has ended that is none of $3. Their
-- rows are locked.
with mine as materialized (
    select ref, ended
    from paddock.sessions
    where ref in (
{{.OfNames}}
    )
    order by ref
    for share
)
select case when exists (select from mine where ended <> 0 and ref <> all ($3::bigint[])) then paddock.decided_too_late() else true end
