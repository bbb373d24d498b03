#!lua flags=allow-oom
-- A mark: announced to the asking replica itself, so that its return proves that everything before it has arrived there.
-- It also notices lost state and starts a new epoch. Full memory must not stop delivery, hence allow-oom.
--
-- KEYS 1 meta  2 last   (as in append.lua)
-- ARGV 1 the replica's own topic
--      2 token of this mark
--      3 a random tag, should a new epoch be needed
--      4 an epoch that the caller found broken, or ''

local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local t = redis.call('TIME')
local digits = function(x) return string.format('%.0f', x) end
local now = digits(t[1] * 1000 + math.floor(t[2] / 1000))

local meta = redis.call('HMGET', KEYS[1], 'epoch', 'run', 'ms', 'seq', 'forgot')
local epoch, ms = meta[1], meta[3] or '0'
local seq, forgot = tonumber(meta[4] or 0), tonumber(meta[5] or 0)
local top = tonumber(redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] or forgot)

-- New when state was or may have been lost: no epoch, another server process, counter and index apart, or found broken.
if not epoch or meta[2] ~= run or top ~= seq or ARGV[4] == epoch then
  if top ~= seq then
    -- Neither can be trusted about the names; the larger number is beyond every event that is still there.
    seq = math.max(seq, top)
    forgot = seq
    redis.call('DEL', KEYS[2])
  end
  epoch = ARGV[3] ~= epoch and ARGV[3] or digits((tonumber(ARGV[3]) + 1) % 4194304)
  -- base: entries of older epochs with a higher number are leftovers of a lost future and count as not kept
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'run', run, 'ms', ms, 'seq', digits(seq), 'forgot', digits(forgot), 'base', digits(seq))
end

redis.call('SPUBLISH', ARGV[1], ARGV[2] .. ' ' .. epoch .. ' ' .. ms .. '-' .. digits(seq) .. ' ' .. now .. ' ' .. run)
return { epoch, ms, digits(seq), now, run }
