#!lua flags=allow-oom
-- The owner of a session says that it lives. A store that has lost it gets it again.
--
-- KEYS 1 session
-- ARGV 1 owner  2 environment  3 how long it is remembered without a sign of its owner, ms
--
-- Returns -2 if it is not this owner's any more, -1 if no other replica was asked for it, else how long ago, ms.

local known = redis.call('HMGET', KEYS[1], 's', 'o', 'a')
if known[1] and (known[1] ~= 'open' or known[2] ~= ARGV[1]) then
  if known[1] ~= 'issued' then return -2 end
end
redis.call('HSET', KEYS[1], 's', 'open', 'o', ARGV[1], 'e', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if not known[3] then return -1 end
local t = redis.call('TIME')
return math.max(0, t[1] * 1000 + math.floor(t[2] / 1000) - tonumber(known[3]))
