-- KEYS: the lock, its counter. ARGV: the lease's id, TTL in milliseconds.
-- Returns the token; 0 if the lock is held.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0
