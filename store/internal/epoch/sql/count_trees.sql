-- Makes each replica read the trees again before it decides anything more.
update paddock.epochs set trees = trees + 1 where epoch = (select max(epoch) from paddock.epochs)
