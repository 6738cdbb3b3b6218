-- Fails with PD001 if the database has something of a group that is none of $1.
select case when exists (
    select from (
        select split_part(name, ':', 1) as g from paddock.records
        union select split_part(root, ':', 1) from paddock.trees
        union select split_part(scope, ':', 1) from paddock.freezes
        union select split_part(scope, ':', 1) from paddock.rules
        union select split_part(key, ':', 1) from paddock.fenced
    ) found
    where g <> all ($1::text[])
) then paddock.decided_too_late() else true end
