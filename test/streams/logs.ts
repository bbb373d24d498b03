import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LimitsOf, StreamLog } from '../../src/streams/log.ts';
import { MemoryLog } from '../../src/streams/memory-log.ts';
import { RedisLog } from '../../src/streams/redis/redis-log.ts';
import { parseRedisUrl } from '../../src/streams/redis/settings.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

export interface LogOptions {
  readonly limitsOf?: LimitsOf;
  readonly maxNames?: number;
  readonly maxIdempotencyKeys?: number;
}

export interface LogMaker {
  readonly name: string;
  start(): Promise<void>;
  make(options?: LogOptions): Promise<StreamLog>;
  stop(): Promise<void>;
}

export const keepAll: LimitsOf = () => ({ events: 100, ageMs: 300_000 });

/** Waits until a condition holds; for things that other processes do. */
export const eventually = async (condition: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> => {
  const until = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > until) throw new Error(`not within ${ms} ms: ${condition}`);
    await sleep(5);
  }
};

/** Redis needs a moment to be connected to. */
export const ready = async (log: RedisLog): Promise<RedisLog> => {
  await eventually(() => log.health().every(({ up, markAgeMs }) => up && markAgeMs !== undefined));
  return log;
};

const memory: LogMaker = {
  name: 'memory',
  start: async () => {},
  make: async (options = {}) => new MemoryLog({ limitsOf: keepAll, ...options }),
  stop: async () => {},
};

const redis = (): LogMaker => {
  let server: RunningRedis;
  const open: RedisLog[] = [];
  return {
    name: 'redis',
    start: async () => {
      server = await startRedis();
    },
    make: async (options = {}) => {
      const admin = new Redis(server.port, '127.0.0.1');
      await admin.flushall();
      admin.disconnect();
      const log = new RedisLog({ settings: parseRedisUrl(server.url), limitsOf: keepAll, ...options });
      open.push(log);
      return ready(log);
    },
    stop: async () => {
      await Promise.all(open.map((log) => log.close()));
      await server.stop();
    },
  };
};

export const logMakers = (): LogMaker[] => [memory, redis()];
