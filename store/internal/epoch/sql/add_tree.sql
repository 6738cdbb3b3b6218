insert into paddock.trees (root, declared_at) values ($1, clock_timestamp()) returning declared_at
