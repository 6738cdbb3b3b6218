-- The cell that this database is.
select name from paddock.cells where self
