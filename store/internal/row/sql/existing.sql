select name from paddock.records where name = any ($1::text[])
