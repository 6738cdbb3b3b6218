-- The groups of which the database has something.
select distinct split_part(name, ':', 1) as g from paddock.records
union select split_part(root, ':', 1) from paddock.trees
union select split_part(scope, ':', 1) from paddock.freezes
union select split_part(scope, ':', 1) from paddock.rules
union select split_part(key, ':', 1) from paddock.fenced
order by g
