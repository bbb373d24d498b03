#!lua flags=no-writes,allow-oom
-- A job and its events behind a number, in one step: a stream that collapses in between would look like one with a hole.
-- Not MULTI, which is refused when memory is full.
--
-- KEYS 1 job  2 log
-- ARGV 1 number

return { redis.call('HGETALL', KEYS[1]), redis.call('XRANGE', KEYS[2], '(' .. ARGV[1] .. '-0', '+') }
