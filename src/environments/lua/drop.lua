#!lua flags=allow-oom
-- Forget a session id that was issued and not used.
--
-- KEYS 1 session

if redis.call('HGET', KEYS[1], 's') ~= 'issued' then return 0 end
return redis.call('DEL', KEYS[1])
