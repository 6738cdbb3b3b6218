-- KEYS: the lock. ARGV: the lease's id, milliseconds to live. Returns 0 if it is not ours any more.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
