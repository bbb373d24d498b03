#!lua flags=allow-oom
-- A session is over; only for the owner on which it is open.
--
-- KEYS 1 session
-- ARGV 1 owner  2 state  3 how long that is remembered, ms

local known = redis.call('HMGET', KEYS[1], 's', 'o')
if known[1] ~= 'open' or known[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 's', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
