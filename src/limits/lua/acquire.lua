#!lua flags=allow-oom
-- One more connection of a principal, if all replicas that are alive together have room for it.
--
-- KEYS 1 leases   zset: replica -> time when its lease ends
--      2 counts   hash: replica -> connections of this principal there
-- ARGV 1 replica
--      2 how many it will have with this one: a total, so that a call whose answer was lost does no harm
--      3 the limit over all replicas
--      4 how long the counts of a principal are kept without a word, ms
--
-- Returns 1, or 0 and nothing is written for this replica. Full memory must not end the counting, hence allow-oom.

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local others = 0
local counts = redis.call('HGETALL', KEYS[2])
for i = 1, #counts, 2 do
  local replica = counts[i]
  if replica ~= ARGV[1] then
    local ends = redis.call('ZSCORE', KEYS[1], replica)
    if ends and tonumber(ends) > now then
      others = others + tonumber(counts[i + 1])
    else
      redis.call('HDEL', KEYS[2], replica)
    end
  end
end

if others + tonumber(ARGV[2]) > tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
