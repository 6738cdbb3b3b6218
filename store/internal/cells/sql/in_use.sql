-- Whether the database has what belongs to groups.
select exists (select from paddock.records) or exists (select from paddock.fenced) or exists (select from paddock.trees)
       or exists (select from paddock.freezes) or exists (select from paddock.rules)
