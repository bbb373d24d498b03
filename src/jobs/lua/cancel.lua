#!lua flags=allow-oom
-- Ask a running job to end. The reason is state of the job; the inbox and the bell are hints. A full memory must not keep
-- anybody from stopping work, hence allow-oom.
--
-- KEYS 1 job
-- ARGV 1 job id  2 principal, '' = anybody  3 reason  4 prefix of inboxes  5 prefix of replicas' topics
--
-- Returns the state, or nothing if there is no such job.

local job = redis.call('HMGET', KEYS[1], 'state', 'principal', 'owner', 'cancel')
if not job[1] or (ARGV[2] ~= '' and job[2] ~= ARGV[2]) then return false end
if job[1] == 'running' and not job[4] then
  redis.call('HSET', KEYS[1], 'cancel', ARGV[3])
  redis.call('XADD', ARGV[4] .. job[3], '*', 'j', ARGV[1])
  redis.call('SPUBLISH', ARGV[5] .. job[3], 'bell')
end
return job[1]
