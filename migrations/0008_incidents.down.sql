-- The history of the locks has the same events, so nothing is lost.

drop table paddock.incidents;
