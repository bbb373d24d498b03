import { readFileSync } from 'node:fs';
import { parseRedisUrl, type RedisSettings } from '../streams/redis/settings.ts';
import type { Config } from './config.ts';

/** Where the shared store is, with its certificates read; undefined if there is none. */
export const redisSettings = ({ redis }: Pick<Config, 'redis'>): RedisSettings | undefined => {
  if (redis.url === undefined) return undefined;
  const { ca, cert, key } = redis.tls;
  const { username, password } = redis.sentinel;
  return parseRedisUrl(redis.url, {
    keyPrefix: redis.keyPrefix,
    ...(redis.partitions !== undefined && { partitions: redis.partitions }),
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...((ca ?? cert) !== undefined && {
      tls: {
        ...(ca !== undefined && { ca: readFileSync(ca) }),
        ...(cert !== undefined && { cert: readFileSync(cert) }),
        ...(key !== undefined && { key: readFileSync(key) }),
      },
    }),
  });
};
