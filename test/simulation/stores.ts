import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LimitsOf, StreamLog } from '../../src/streams/log.ts';
import { MemoryLog } from '../../src/streams/memory-log.ts';
import { RedisLog } from '../../src/streams/redis/redis-log.ts';
import type { RedisSettings } from '../../src/streams/redis/settings.ts';
import type { Random } from '../support/random.ts';
import { type RunningRedis, startCluster, startRedis } from '../support/redis.ts';
import type { FaultyLog } from './faulty-log.ts';

/** Something that goes wrong, and how often relative to others. */
export interface Fault {
  readonly name: string;
  readonly weight: number;
  readonly strike: (random: Random) => Promise<void>;
}

export interface SimulatedStore {
  /** The log as one replica opens it. */
  open(): () => StreamLog;
  /** Where it is, if it is a server. */
  readonly url?: string;
  /** What can go wrong with it, and with the feeds of these logs. */
  faults(replicas: readonly FaultyLog[]): Fault[];
  stop(): Promise<void>;
}

const lag = (replicas: readonly FaultyLog[]) => ({
  name: 'feed lags',
  weight: 3,
  strike: async (random: Random) => {
    for (const replica of replicas) replica.lagMs = random.chance(0.5) ? 0 : 1 + random.below(40);
  },
});

export const memoryStore = (limitsOf: LimitsOf, partitions: number): SimulatedStore => {
  let current = new MemoryLog({ limitsOf, partitions });
  return {
    open: () => () => current,
    faults: (replicas) => [
      lag(replicas),
      {
        name: 'feed broken',
        weight: 6,
        strike: async (random) => {
          for (const replica of replicas) if (random.chance(0.7)) replica.breakFeeds();
        },
      },
      {
        name: 'store emptied',
        weight: 1,
        strike: async () => {
          current = new MemoryLog({ limitsOf, partitions });
          for (const replica of replicas) replica.breakFeeds();
        },
      },
    ],
    stop: () => current.close(),
  };
};

export const PREFIX = 'simulated:';
const META = `${PREFIX}{0}:meta`;
const LAST = `${PREFIX}{0}:last`;

const settingsFor = (
  kind: RedisSettings['kind'],
  servers: readonly RunningRedis[],
  partitions: number,
): RedisSettings => ({
  kind,
  nodes: servers.map(({ port }) => ({ host: '127.0.0.1', port })),
  keyPrefix: PREFIX,
  partitions,
});

const adminOf = (port: number): Redis => {
  const admin = new Redis(port, '127.0.0.1', { retryStrategy: () => 50 });
  admin.on('error', () => {});
  return admin;
};

/** Opens a log for a replica, and writes it down so that it is closed at the end. */
const openerOf = (settings: RedisSettings, limitsOf: LimitsOf, logs: RedisLog[]) => (): (() => StreamLog) => {
  const log = new RedisLog({ settings, limitsOf });
  logs.push(log);
  return () => log;
};

export const redisStore = async (limitsOf: LimitsOf): Promise<SimulatedStore> => {
  let server = await startRedis();
  const { port } = server;
  const admin = adminOf(port);
  const settings = settingsFor('standalone', [server], 1);
  const logs: RedisLog[] = [];
  const pause = async (ms: number): Promise<void> => {
    server.child.kill('SIGSTOP');
    await sleep(ms);
    server.child.kill('SIGCONT');
  };
  return {
    url: server.url,
    open: openerOf(settings, limitsOf, logs),
    faults: (replicas) => [
      lag(replicas),
      {
        name: 'subscribers killed',
        weight: 8,
        strike: async () => void (await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')),
      },
      {
        name: 'commands killed',
        weight: 4,
        strike: async () => void (await admin.call('CLIENT', 'KILL', 'TYPE', 'normal')),
      },
      { name: 'script cache flushed', weight: 1, strike: async () => void (await admin.script('FLUSH')) },
      { name: 'paused', weight: 2, strike: async (random) => pause(50 + random.below(700)) },
      { name: 'paused for long', weight: 0.5, strike: async (random) => pause(2_200 + random.below(600)) },
      { name: 'flushed', weight: 1, strike: async () => void (await admin.flushall()) },
      {
        name: 'counter rolled back',
        weight: 1,
        strike: async (random) => void (await admin.hincrby(META, 'seq', -(1 + random.below(60)))),
      },
      { name: 'index deleted', weight: 1, strike: async () => void (await admin.del(LAST)) },
      {
        name: 'restarted empty',
        weight: 1,
        strike: async () => {
          await server.stop();
          server = await startRedis({ port: String(port) });
        },
      },
    ],
    stop: async () => {
      await Promise.all(logs.map((log) => log.close()));
      admin.disconnect();
      await server.stop();
    },
  };
};

/** A real cluster; its nodes stay, only connections and state fail. */
export const clusterStore = async (limitsOf: LimitsOf, partitions: number): Promise<SimulatedStore> => {
  const servers = await startCluster(3);
  const admins = servers.map(({ port }) => adminOf(port));
  const settings = settingsFor('cluster', servers, partitions);
  const logs: RedisLog[] = [];
  return {
    open: openerOf(settings, limitsOf, logs),
    faults: (replicas) => [
      lag(replicas),
      {
        name: 'subscribers killed',
        weight: 8,
        strike: async (random) => void (await random.pick(admins).call('CLIENT', 'KILL', 'TYPE', 'pubsub')),
      },
      {
        name: 'commands killed',
        weight: 4,
        strike: async (random) => void (await random.pick(admins).call('CLIENT', 'KILL', 'TYPE', 'normal')),
      },
      { name: 'flushed', weight: 1, strike: async (random) => void (await random.pick(admins).flushall()) },
      {
        name: 'script cache flushed',
        weight: 1,
        strike: async (random) => void (await random.pick(admins).script('FLUSH')),
      },
    ],
    stop: async () => {
      await Promise.all(logs.map((log) => log.close()));
      for (const admin of admins) admin.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
};
