#!lua
-- Open a session id that is new, was only issued, or was closed.
--
-- KEYS 1 session  hash: s state, o owner, e environment, a when another replica was last asked for it (ms)
-- ARGV 1 owner  2 environment  3 how long it is remembered without a sign of its owner, ms
--
-- Returns nothing, or who has it.

local known = redis.call('HMGET', KEYS[1], 's', 'o', 'e')
-- An owner opens an id only when it has none of it: its own is a first try, or one whose end could not be written.
if known[1] == 'open' and known[2] ~= ARGV[1] then return known end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 's', 'open', 'o', ARGV[1], 'e', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return nil
