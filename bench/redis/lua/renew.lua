-- KEYS: the lock. ARGV: the lease's id, TTL in milliseconds. Returns 0 if the lease has ended.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
