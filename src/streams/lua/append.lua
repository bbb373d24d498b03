#!lua
-- Append events to their channels: number, link, store, trim and announce, in one step.
--
-- KEYS 1 meta     hash: epoch, run, ms, seq, forgot, base
--      2 last     zset: channel name -> number of its last event
--      3 idem     string: fingerprint of the events, then the reply (unused when ARGV 2 is empty)
--      4 idemset  zset: the principal's idempotency keys by time     (unused when ARGV 2 is empty)
--      5..        one stream per distinct channel
-- ARGV 1 deadline in ms of this server's clock
--      2 fingerprint of the events, '' = not idempotent
--      3 how long an idempotency key is remembered, ms
--      4 how many of them per principal
--      5 how many channel names are remembered
--      6 prefix of the stream keys, also of the topics
--      7 topic of all events of this partition
--      8 number of distinct channels n
--      then n times: name, events kept, age in ms
--      then per event: index of its channel (1..n), data
--
-- The shebang without flags makes Redis refuse the whole script when it is out of memory. A Lua error does not roll back,
-- so everything is read and checked before the first write.

local n = tonumber(ARGV[8])
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'ms', 'seq', 'forgot')
if not meta[1] then return redis.error_reply('NOEPOCH the store has no epoch') end

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
-- A caller that was answered with an error must not see its event appear later.
if now > tonumber(ARGV[1]) then return redis.error_reply('LATE the deadline has passed') end

local fingerprint = ARGV[2]
if fingerprint ~= '' then
  local seen = redis.call('GET', KEYS[3])
  if seen then
    if string.sub(seen, 1, #fingerprint) ~= fingerprint then
      return redis.error_reply('CONFLICT the idempotency key was used for other events')
    end
    return cjson.decode(string.sub(seen, #fingerprint + 1))
  end
end

-- The counter and the index are written together; if they differ, one of them was lost or rolled back.
local top = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or meta[4]
if tonumber(top) ~= tonumber(meta[3]) then return redis.error_reply('BROKEN counter and index differ') end

local digits = function(x) return string.format('%.0f', x) end
local epoch, forgot = meta[1], meta[4]
local ms, seq = math.max(now, tonumber(meta[2])), tonumber(meta[3]) -- store time never runs backwards
local channels = {}
for i = 1, n do
  local name = ARGV[6 + 3 * i]
  local score = redis.call('ZSCORE', KEYS[2], name)
  channels[i] = {
    name = name,
    key = KEYS[4 + i],
    -- '~' tells followers that the true predecessor is not known any more, only that it is not beyond this number
    prev = score and digits(tonumber(score)) or ('~' .. forgot),
    known = score,
    events = ARGV[7 + 3 * i],
    age = tonumber(ARGV[8 + 3 * i]),
  }
end

-- First write below this line.

local ids = {}
for i = 9 + 3 * n, #ARGV, 2 do
  local c, data = channels[tonumber(ARGV[i])], ARGV[i + 1]
  -- A stream under a name that the index does not know is a leftover whose numbers mean nothing here.
  if not c.known then redis.call('DEL', c.key); c.known = true end
  seq = seq + 1
  local id = digits(ms) .. '-' .. digits(seq)
  local add = { 'XADD', c.key, 'MAXLEN', '=', c.events, id, 'e', epoch, 'p', c.prev, 'd', data }
  local done = redis.pcall(unpack(add))
  if type(done) == 'table' and done.err then
    -- Only a key that is not ours can refuse: another type, or ids beyond our clock. It must not stop us half way.
    redis.call('DEL', c.key)
    redis.call(unpack(add))
  end
  local message = epoch .. ' ' .. id .. ' ' .. c.prev .. ' ' .. c.name .. ' ' .. data
  redis.call('SPUBLISH', c.key, message)
  redis.call('SPUBLISH', ARGV[7], message)
  c.prev = digits(seq)
  c.used = true
  ids[#ids + 1] = id
end

redis.call('HSET', KEYS[1], 'ms', digits(ms), 'seq', digits(seq))
for i = 1, n do
  local c = channels[i]
  if c.used then
    redis.call('ZADD', KEYS[2], c.prev, c.name)
    redis.call('XTRIM', c.key, 'MINID', '=', digits(math.max(now - c.age, 0)))
    redis.call('PEXPIRE', c.key, digits(math.max(c.age, 1)))
  end
end

local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[5])
if over > 0 then
  local gone = redis.call('ZPOPMIN', KEYS[2], over)
  redis.call('HSET', KEYS[1], 'forgot', digits(tonumber(gone[#gone])))
  for i = 1, #gone, 2 do redis.call('DEL', ARGV[6] .. gone[i]) end
end

local reply = { epoch, ids }
if fingerprint ~= '' then
  redis.call('SET', KEYS[3], fingerprint .. cjson.encode(reply), 'PX', ARGV[3])
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', digits(now - tonumber(ARGV[3])))
  redis.call('ZADD', KEYS[4], now, KEYS[3])
  local many = redis.call('ZCARD', KEYS[4]) - tonumber(ARGV[4])
  if many > 0 then
    local old = redis.call('ZPOPMIN', KEYS[4], many)
    for i = 1, #old, 2 do redis.call('DEL', old[i]) end
  end
  redis.call('PEXPIRE', KEYS[4], ARGV[3])
end
return reply
