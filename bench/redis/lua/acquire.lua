-- KEYS: the lock, its counter. ARGV: the lease's id, milliseconds to live.
-- Returns the token; 0 if it is somebody else's.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0
