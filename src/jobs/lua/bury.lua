#!lua flags=allow-oom
-- Forget a dead owner that has no running jobs left.
--
-- KEYS 1 jobs of the owner  2 owners  3 inbox of the owner
-- ARGV 1 owner

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('SREM', KEYS[2], ARGV[1])
  redis.call('DEL', KEYS[3])
end
return 1
