#!lua
-- Create a job, and with it the idempotency key that leads to it, in one step.
--
-- KEYS 1 job      hash
--      2 log      stream: <seq>-0 -> d data, e end state (terminal event only)
--      3 jobs     set: running jobs of the owner
--      4 owners   set: replicas that have jobs in this partition
--      5 inbox    stream: what waits for the owner
--      6 idem     string: fingerprint, space, job id     (unused when ARGV 7 is empty)
--      7 idemset  zset: the principal's keys by time      (unused when ARGV 7 is empty)
-- ARGV 1 deadline in ms of this server's clock
--      2 job id  3 owner  4 kind  5 principal  6 about
--      7 fingerprint of the request, '' = no idempotency key
--      8 how long the key is remembered, ms
--      9 how many of them per principal
--     10 topic of the owner, '' = the caller is the owner
--     11 input for the owner's inbox
--     12 how much an inbox holds
--     13.. first events
--
-- Everything is read and checked before the first write: a Lua error does not roll back.

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local digits = function(x) return string.format('%.0f', x) end
-- A caller that was told that nothing was started must not see it start later.
if now > tonumber(ARGV[1]) then return redis.error_reply('LATE the deadline has passed') end

local fingerprint = ARGV[7]
if fingerprint ~= '' then
  local seen = redis.call('GET', KEYS[6])
  if seen then
    local space = string.find(seen, ' ', 1, true)
    local id = string.sub(seen, space + 1)
    if string.sub(seen, 1, space - 1) ~= fingerprint then return { 'conflict' } end
    -- The caller's own id: its first try, whose answer was lost.
    if id ~= ARGV[2] then return { 'known', id } end
  end
end
local created = redis.call('HGET', KEYS[1], 'created')
if created then return { 'created', created } end
if ARGV[10] ~= '' and redis.call('XLEN', KEYS[5]) >= tonumber(ARGV[12]) then return { 'busy' } end

-- First write below this line.

redis.call('DEL', KEYS[2])
local last = #ARGV - 12
for i = 1, last do redis.call('XADD', KEYS[2], digits(i) .. '-0', 'd', ARGV[12 + i]) end
redis.call('HSET', KEYS[1], 'kind', ARGV[4], 'principal', ARGV[5], 'owner', ARGV[3], 'about', ARGV[6],
  'state', 'running', 'last', digits(last), 'from', '1', 'created', digits(now))
redis.call('SADD', KEYS[3], ARGV[2])
redis.call('SADD', KEYS[4], ARGV[3])
if fingerprint ~= '' then
  redis.call('SET', KEYS[6], fingerprint .. ' ' .. ARGV[2], 'PX', ARGV[8])
  redis.call('ZREMRANGEBYSCORE', KEYS[7], '-inf', digits(now - tonumber(ARGV[8])))
  redis.call('ZADD', KEYS[7], now, KEYS[6])
  local many = redis.call('ZCARD', KEYS[7]) - tonumber(ARGV[9])
  if many > 0 then
    local old = redis.call('ZPOPMIN', KEYS[7], many)
    for i = 1, #old, 2 do redis.call('DEL', old[i]) end
  end
  redis.call('PEXPIRE', KEYS[7], ARGV[8])
end
if ARGV[10] ~= '' then
  redis.call('XADD', KEYS[5], '*', 'j', ARGV[2], 'i', ARGV[11])
  redis.call('SPUBLISH', ARGV[10], 'bell')
end
return { 'created', digits(now) }
