-- KEYS: the lock. ARGV: the lease's id. Returns 0 if it is not ours any more.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
