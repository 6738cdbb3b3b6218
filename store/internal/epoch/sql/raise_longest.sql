-- Records the length of the longest lease before a longer one is granted.
update paddock.epochs set longest_ms = $1::bigint
where epoch = (select max(epoch) from paddock.epochs) and longest_ms < $1::bigint
