import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { Jobs, type JobsObserver, type JobTimes, type RemoteWork, type Verdict } from '../../src/jobs/jobs.ts';
import type { JobKind } from '../../src/jobs/kind.ts';
import { MemoryJobStore } from '../../src/jobs/memory-store.ts';
import type { JobReader, Taken } from '../../src/jobs/reader.ts';
import { JobKeys } from '../../src/jobs/redis/keys.ts';
import { RedisJobStore } from '../../src/jobs/redis/redis-store.ts';
import type { JobStore } from '../../src/jobs/store.ts';
import { PartitionKeys } from '../../src/streams/redis/keys.ts';
import { RedisLog } from '../../src/streams/redis/redis-log.ts';
import { parseRedisUrl, type RedisSettings } from '../../src/streams/redis/settings.ts';
import { eventually, keepAll, ready } from '../streams/logs.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

/** A kind whose events say what they are. */
export const testKind = (more: Partial<JobKind> = {}): JobKind => ({
  name: 'test',
  keepMs: 60_000,
  logMs: 60_000,
  maxEvents: 1_000,
  maxBytes: 1_000_000,
  ended: (log, { cause, message }) => [`note ${log.last + 1}`, `${cause} ${log.last + 2}: ${message}`],
  ...more,
});

/** A snapshot that shows what it stands for. */
export const listing = (before: string | undefined, events: readonly { readonly data: string }[]): string =>
  [...(before ? [before] : []), ...events.map(({ data }) => data)].join('|');

export class Counting implements JobsObserver {
  readonly counts: Record<string, number> = {};
  readonly batches: number[] = [];
  readonly firsts: number[] = [];
  started = (kind: string): void => this.count(`started ${kind}`);
  ended = (kind: string, state: string): void => this.count(`ended ${kind} ${state}`);
  reaped = (kind: string): void => this.count(`reaped ${kind}`);
  fenced = (kind: string): void => this.count(`fenced ${kind}`);
  restored = (kind: string): void => this.count(`restored ${kind}`);
  batch = (events: number): void => void this.batches.push(events);
  first = (_: string, ms: number): void => void this.firsts.push(ms);

  private count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }
}

export interface Replica {
  readonly name: string;
  readonly jobs: Jobs;
  readonly store: JobStore;
  readonly observed: Counting;
  readonly failures: unknown[];
}

export interface ReplicaOptions {
  readonly times?: Partial<JobTimes>;
  readonly admit?: (principal: string) => Promise<Verdict>;
  readonly kinds?: readonly JobKind[];
  /** What it does for jobs of these kinds that other replicas ask for. */
  readonly work?: RemoteWork;
  /** Redis: what the connections are made with. */
  readonly settings?: Partial<RedisSettings>;
}

/** Somewhere several replicas can share jobs. */
export interface Place {
  readonly name: string;
  start(): Promise<void>;
  /** Forgets everything that was there before. */
  clear(): Promise<void>;
  replica(options?: ReplicaOptions): Promise<Replica>;
  /** Its process dies: nothing more is heard of it. */
  kill(replica: Replica): Promise<void>;
  /** As if the time had passed after which a dead replica's lease is gone. */
  expire(replica: Replica): Promise<void>;
  stop(): Promise<void>;
}

const replicaOf = (store: JobStore, name: string, { times, admit, kinds = [], work }: ReplicaOptions): Replica => {
  const observed = new Counting();
  const failures: unknown[] = [];
  const jobs = new Jobs({
    store,
    replica: name,
    observe: observed,
    failed: (message, error) => failures.push([message, error]),
    ...(times && { times }),
    ...(admit && { admit }),
  });
  for (const kind of kinds) jobs.declare(kind, work);
  return { name, jobs, store, observed, failures };
};

export const memoryPlace = (now?: () => number): Place => {
  let store: MemoryJobStore;
  const open: Replica[] = [];
  return {
    name: 'memory',
    start: async () => {},
    clear: async () => {
      for (const { jobs } of open.splice(0)) await jobs.close();
      store = new MemoryJobStore(now ? { now } : {});
    },
    replica: async (options = {}) => {
      const replica = replicaOf(store, randomUUID(), options);
      open.push(replica);
      return replica;
    },
    kill: ({ jobs }) => jobs.close(),
    expire: ({ name }) => store.retire(name),
    stop: async () => {
      for (const { jobs } of open) await jobs.close();
    },
  };
};

export interface RedisPlace extends Place {
  readonly server: RunningRedis;
  readonly admin: Redis;
}

export const redisPlace = (): RedisPlace => {
  let server: RunningRedis;
  let admin: Redis;
  const open: { replica: Replica; log: RedisLog }[] = [];
  const closeAll = async (): Promise<void> => {
    for (const { replica, log } of open.splice(0)) {
      await replica.jobs.close();
      await log.close();
    }
  };
  return {
    name: 'redis',
    get server() {
      return server;
    },
    get admin() {
      return admin;
    },
    start: async () => {
      server = await startRedis();
      admin = new Redis(server.port, '127.0.0.1');
    },
    clear: async () => {
      await closeAll();
      await admin.flushall();
    },
    replica: async (options = {}) => {
      const settings = { ...parseRedisUrl(server.url), ...options.settings };
      const name = randomUUID();
      const log = new RedisLog({ settings, limitsOf: keepAll, replica: name });
      const store = new RedisJobStore(log.parts); // hears the first mark
      await ready(log);
      const replica = replicaOf(store, name, options);
      open.push({ replica, log });
      await eventually(() => replica.store.alive(replica.name).catch(() => false));
      return replica;
    },
    kill: async (dead) => {
      await dead.jobs.close();
      for (const { replica, log } of open) if (replica === dead) await log.close();
    },
    expire: async ({ name }) => {
      const keys = new JobKeys(new PartitionKeys(parseRedisUrl(server.url).keyPrefix, 0).base);
      await admin.del(keys.lease(name));
    },
    stop: async () => {
      await closeAll();
      admin.disconnect();
      await server.stop();
    },
  };
};

/** Everything that a reader gets, as it comes. */
export class Follower {
  readonly seen: string[] = [];
  readonly numbers: number[] = [];
  readonly resets: string[] = [];
  ended: string | undefined;
  private readonly reader: JobReader;

  constructor(reader: JobReader) {
    this.reader = reader;
    reader.onWake(() => this.pump());
    this.pump();
  }

  get last(): number {
    return this.numbers.at(-1) ?? 0;
  }

  close(): void {
    this.reader.close();
  }

  private pump(): void {
    for (let taken: Taken | undefined = this.reader.take(); taken; taken = this.reader.take()) {
      if (taken.what === 'end') {
        this.ended = taken.state;
        return;
      }
      if (taken.what === 'reset') {
        this.resets.push(`${taken.reset.reason} ${taken.reset.from} ${taken.reset.snapshot ?? ''}`);
        continue;
      }
      for (const { seq, data } of taken.events) {
        this.numbers.push(seq);
        this.seen.push(data);
      }
    }
  }
}

export const follow = async (replica: Replica, id: string, after: number | undefined = 0): Promise<Follower> => {
  const reader = await replica.jobs.attach(id, { after });
  if (!reader) throw new Error(`no job ${id}`);
  return new Follower(reader);
};
