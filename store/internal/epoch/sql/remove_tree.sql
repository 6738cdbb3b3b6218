delete from paddock.trees where root = $1
