-- Removes the rule of the scope $4. Returns a row; none if the policy has changed.
with changed as (
{{.Counted}}
    returning 1
)
delete from paddock.rules using changed where scope = $4::text returning true
