#!lua flags=allow-oom
-- Look a session id up; for an open one this counts as activity.
--
-- KEYS 1 session
--
-- Returns state, owner and environment, or nothing.

local known = redis.call('HMGET', KEYS[1], 's', 'o', 'e')
if not known[1] then return nil end
if known[1] == 'open' then
  local t = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'a', string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000)))
end
return known
