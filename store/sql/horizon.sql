select pruned from paddock.horizon
