#!lua flags=allow-oom
-- A replica is alive. SET alone would be refused when memory is full, and then living replicas would look dead.
--
-- KEYS 1 lease
-- ARGV 1 length, ms
--
-- Returns 1 if it was still there, 0 if others may have taken the replica for dead.

local held = redis.call('EXISTS', KEYS[1])
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return held
