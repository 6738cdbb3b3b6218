-- Counts a change of the placement. Fails with PD001 if the policy has changed.
with changed as (
{{.Counted}}
    returning 1
)
select case when exists (select from changed) then true else paddock.decided_too_late() end
