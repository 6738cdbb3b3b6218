-- Nobody else begins an epoch meanwhile; deciding goes on reading the newest.
lock table paddock.epochs in share row exclusive mode
