delete from paddock.cells
