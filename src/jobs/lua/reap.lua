#!lua flags=allow-oom
-- End a running job whose owner is dead. The fence: from here on the owner, should it come back, can write nothing.
--
-- KEYS 1 job  2 log  3 jobs of the owner
-- ARGV 1 job id  2 the dead owner
--      3 number of the last event that the caller has seen
--      4 end state  5 how long the job is kept, ms  6 how long its stream, ms
--      7 snapshot of everything before the terminal event, '' = none
--      8.. events, the last one terminal
--
-- Returns reaped, over if the job was over before, or grown if it has more events than the caller has seen.

local job = redis.call('HMGET', KEYS[1], 'owner', 'state', 'last')
if not job[2] or job[1] ~= ARGV[2] or job[2] ~= 'running' then
  redis.call('SREM', KEYS[3], ARGV[1])
  return 'over'
end
if job[3] ~= ARGV[3] then return 'grown' end

local last = tonumber(job[3])
for i = 8, #ARGV do
  last = last + 1
  local seq = string.format('%.0f', last)
  local over = i == #ARGV and ARGV[4] or ''
  if over ~= '' then
    redis.call('XADD', KEYS[2], seq .. '-0', 'd', ARGV[i], 'e', over)
  else
    redis.call('XADD', KEYS[2], seq .. '-0', 'd', ARGV[i])
  end
  redis.call('SPUBLISH', KEYS[2], seq .. ' ' .. over .. ' ' .. ARGV[i])
end
-- Nobody's now: whatever the owner tries to repeat is not its own any more.
redis.call('HSET', KEYS[1], 'owner', '', 'last', string.format('%.0f', last), 'state', ARGV[4], 'final', ARGV[#ARGV])
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'whole', ARGV[7]) end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
redis.call('SREM', KEYS[3], ARGV[1])
return 'reaped'
