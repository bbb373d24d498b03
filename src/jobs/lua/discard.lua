#!lua flags=allow-oom
-- Undo a create of whose outcome the caller never heard. Only what has not begun: a job with more than its first events
-- stays.
--
-- KEYS as in create.lua
-- ARGV 1 job id  2 owner  3 number of its first events  4 fingerprint, '' = no idempotency key

local job = redis.call('HMGET', KEYS[1], 'owner', 'last', 'state')
if job[1] ~= ARGV[2] or job[2] ~= ARGV[3] or job[3] ~= 'running' then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SREM', KEYS[3], ARGV[1])
if ARGV[4] ~= '' and redis.call('GET', KEYS[6]) == ARGV[4] .. ' ' .. ARGV[1] then
  redis.call('DEL', KEYS[6])
  redis.call('ZREM', KEYS[7], KEYS[6])
end
return 1
