-- Prevents other transactions from starting an epoch. Decisions go on reading the newest one.
lock table paddock.epochs in share row exclusive mode
