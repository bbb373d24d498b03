#!lua flags=allow-oom
-- Answer a question that a running job has asked. The first answer wins.
--
-- KEYS 1 job
-- ARGV 1 job id  2 principal, '' = anybody  3 name of the question
--      4 '1' or '0', space, note
--      5 prefix of inboxes  6 prefix of replicas' topics
--
-- Returns decided, same or conflict, or nothing if there is no such question.

local question = 'a:' .. ARGV[3]
local job = redis.call('HMGET', KEYS[1], 'state', 'principal', 'owner', question)
if job[1] ~= 'running' or not job[4] or (ARGV[2] ~= '' and job[2] ~= ARGV[2]) then return false end
if job[4] ~= '' then
  return string.sub(job[4], 1, 1) == string.sub(ARGV[4], 1, 1) and 'same' or 'conflict'
end
redis.call('HSET', KEYS[1], question, ARGV[4])
redis.call('XADD', ARGV[5] .. job[3], '*', 'j', ARGV[1])
redis.call('SPUBLISH', ARGV[6] .. job[3], 'bell')
return 'decided'
