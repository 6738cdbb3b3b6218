select name from paddock.locks where name = any ($1::text[]) and slot = 0
