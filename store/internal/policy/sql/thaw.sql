-- Ends the freeze of the scope $4. Returns a row; none if the policy has changed.
with changed as (
{{.Counted}}
    returning 1
)
delete from paddock.freezes using changed where scope = $4::text returning true
