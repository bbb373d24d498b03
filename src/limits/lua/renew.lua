#!lua flags=allow-oom
-- A replica is alive: its counts are believed until its lease ends, by this server's clock.
--
-- KEYS 1 leases   zset: replica -> time when its lease ends
-- ARGV 1 replica
--      2 length of the lease, ms; 0 gives it up
--
-- Returns 1 if the lease was still there. If it was not, the others may have forgotten the replica's counts.

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
local length = tonumber(ARGV[2])
if length == 0 then return redis.call('ZREM', KEYS[1], ARGV[1]) end
local added = redis.call('ZADD', KEYS[1], string.format('%.0f', now + length), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1 - added
