#!lua flags=allow-oom
-- What a replica holds of a principal, whatever the limit: after a connection has ended, and after Redis was away.
--
-- KEYS 1 counts   hash: replica -> connections of this principal there
-- ARGV 1 replica
--      2 how many it has
--      3 how long the counts of a principal are kept without a word, ms

if ARGV[2] == '0' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
