drop table paddock.epochs;
