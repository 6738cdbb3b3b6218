drop view paddock.leases;
drop view paddock.queue;
drop view paddock.history;
