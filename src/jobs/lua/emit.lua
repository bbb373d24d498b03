#!lua
-- Append consecutive events to a job's stream. Only its owner may, and only while it is running.
--
-- KEYS 1 job  2 log  3 jobs of the owner  4 owners
-- ARGV 1 job id  2 owner
--      3 number of the first event
--      4 end state if the last event is the terminal one, else ''
--      5 how long the job is kept after its end, ms
--      6 how long its stream is kept after its end, ms
--      7 snapshot of everything before the terminal event, '' = none
--      8 collapse: number of the first event that is kept, '' = none
--      9 collapse: the snapshot of everything before it
--     10 number of questions n, then their names
--     11 + n.. events
--
-- Returns stored, fenced or lost. May be repeated, also with more events behind: what is there already is skipped.

local job = redis.call('HMGET', KEYS[1], 'owner', 'state', 'last')
if not job[2] then return 'lost' end
if job[1] ~= ARGV[2] then return 'fenced' end
local last, first = tonumber(job[3]), tonumber(ARGV[3])
local asks = tonumber(ARGV[10])
local events = 10 + asks
local n = #ARGV - events
if last >= first + n - 1 and (ARGV[4] == '' or job[2] == ARGV[4]) then return 'stored' end
if job[2] ~= 'running' then return 'fenced' end
if first > last + 1 then return 'lost' end

local digits = function(x) return string.format('%.0f', x) end
for i = last + 2 - first, n do
  last = last + 1
  local seq, data = digits(last), ARGV[events + i]
  local over = i == n and ARGV[4] or ''
  if over ~= '' then
    redis.call('XADD', KEYS[2], seq .. '-0', 'd', data, 'e', over)
  else
    redis.call('XADD', KEYS[2], seq .. '-0', 'd', data)
  end
  redis.call('SPUBLISH', KEYS[2], seq .. ' ' .. over .. ' ' .. data)
end
redis.call('HSET', KEYS[1], 'last', digits(last))
for i = 11, 10 + asks do redis.call('HSETNX', KEYS[1], 'a:' .. ARGV[i], '') end
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[1], 'from', ARGV[8], 'snap', ARGV[9])
  redis.call('XTRIM', KEYS[2], 'MINID', '=', ARGV[8] .. '-0')
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'state', ARGV[4], 'final', ARGV[#ARGV])
  if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'whole', ARGV[7]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
  redis.call('SREM', KEYS[3], ARGV[1])
  if redis.call('EXISTS', KEYS[3]) == 0 then redis.call('SREM', KEYS[4], ARGV[2]) end
end
return 'stored'
