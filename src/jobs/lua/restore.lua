#!lua
-- Write a job again from what its owner holds, if the store has less of it or nothing at all.
--
-- KEYS 1 job  2 log  3 jobs of the owner  4 owners
-- ARGV 1 job id  2 owner  3 kind  4 principal  5 about  6 created
--      7 number of the first event that is kept
--      8 snapshot of everything before it, '' = none
--      9 reason of the cancel, '' = none
--     10 end state, '' = running  11, 12, 13 as 5, 6, 7 of emit.lua
--     14 number of questions n, then n times name, decision
--     15 + 2n.. events
--
-- Returns stored or fenced.

local job = redis.call('HMGET', KEYS[1], 'owner', 'state', 'last')
local from = tonumber(ARGV[7])
local asks = tonumber(ARGV[14])
local events = 14 + 2 * asks
local n = #ARGV - events
if job[2] then
  if job[1] ~= ARGV[2] then return 'fenced' end
  if tonumber(job[3]) >= from + n - 1 and (ARGV[10] == '' or job[2] == ARGV[10]) then return 'stored' end
  if job[2] ~= 'running' then return 'fenced' end
end

local digits = function(x) return string.format('%.0f', x) end
local had = tonumber(job[3] or 0)
local last = from - 1 + n
redis.call('DEL', KEYS[2])
for i = 1, n do
  local seq, data = from - 1 + i, ARGV[events + i]
  local over = i == n and ARGV[10] or ''
  if over ~= '' then
    redis.call('XADD', KEYS[2], digits(seq) .. '-0', 'd', data, 'e', over)
  else
    redis.call('XADD', KEYS[2], digits(seq) .. '-0', 'd', data)
  end
  -- Those who follow have seen what was there before; what they have seen twice they know by its number.
  if seq > had then redis.call('SPUBLISH', KEYS[2], digits(seq) .. ' ' .. over .. ' ' .. data) end
end
redis.call('HSET', KEYS[1], 'kind', ARGV[3], 'principal', ARGV[4], 'owner', ARGV[2], 'about', ARGV[5],
  'state', 'running', 'last', digits(last), 'from', digits(from), 'created', ARGV[6])
if ARGV[8] ~= '' then redis.call('HSET', KEYS[1], 'snap', ARGV[8]) end
if ARGV[9] ~= '' then redis.call('HSETNX', KEYS[1], 'cancel', ARGV[9]) end
for i = 15, 14 + 2 * asks, 2 do
  if ARGV[i + 1] ~= '' then
    redis.call('HSET', KEYS[1], 'a:' .. ARGV[i], ARGV[i + 1])
  else
    redis.call('HSETNX', KEYS[1], 'a:' .. ARGV[i], '')
  end
end
if ARGV[10] == '' then
  redis.call('SADD', KEYS[3], ARGV[1])
  redis.call('SADD', KEYS[4], ARGV[2])
else
  redis.call('HSET', KEYS[1], 'state', ARGV[10], 'final', ARGV[#ARGV])
  if ARGV[13] ~= '' then redis.call('HSET', KEYS[1], 'whole', ARGV[13]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[11])
  redis.call('PEXPIRE', KEYS[2], ARGV[12])
  redis.call('SREM', KEYS[3], ARGV[1])
  if redis.call('EXISTS', KEYS[3]) == 0 then redis.call('SREM', KEYS[4], ARGV[2]) end
end
return 'stored'
