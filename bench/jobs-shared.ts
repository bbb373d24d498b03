import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Jobs, type JobsObserver } from '../src/jobs/jobs.ts';
import type { JobKind } from '../src/jobs/kind.ts';
import { MemoryJobStore } from '../src/jobs/memory-store.ts';
import type { JobReader } from '../src/jobs/reader.ts';
import { RedisJobStore } from '../src/jobs/redis/redis-store.ts';
import { RedisLog } from '../src/streams/redis/redis-log.ts';
import { parseRedisUrl } from '../src/streams/redis/settings.ts';
import { percentile } from './support.ts';

export const KIND: JobKind = {
  name: 'bench',
  keepMs: 60_000,
  logMs: 60_000,
  maxEvents: 1_000_000,
  maxBytes: 1_000_000_000,
  ended: (_, { message }) => [message],
};

const nothing = (): void => {};
const UNOBSERVED: JobsObserver = {
  started: nothing,
  ended: nothing,
  reaped: nothing,
  fenced: nothing,
  restored: nothing,
  batch: nothing,
  first: nothing,
};

/** The jobs of one replica, on the Redis behind a URL or on a memory store of its own. */
export const openJobs = async (url: string | undefined, observe: Partial<JobsObserver> = {}): Promise<Jobs> => {
  const replica = randomUUID();
  const log = url === undefined ? undefined : new RedisLog({ settings: parseRedisUrl(url), limitsOf: none, replica });
  while (log?.health().some(({ up, markAgeMs }) => !up || markAgeMs === undefined)) await sleep(10);
  const store = log ? new RedisJobStore(log.parts) : new MemoryJobStore();
  const jobs = new Jobs({ store, replica, observe: { ...UNOBSERVED, ...observe }, failed: console.error });
  jobs.declare(KIND);
  while (!(await store.alive(replica))) await sleep(10);
  return jobs;
};

const none = (): { events: number; ageMs: number } => ({ events: 1, ageMs: 1_000 });

/** Microseconds on a clock that all processes of this machine share. */
export const stamp = (): number => Math.round((performance.timeOrigin + performance.now()) * 1_000);

export const eventOf = (size: number): (() => string) => {
  const padding = 'x'.repeat(Math.max(0, size - 29)); // what stands around it, with a stamp of 16 digits
  return () => `{"time":${stamp()},"p":"${padding}"}`;
};

/** What a client has seen of the events that were emitted while it counted. */
export interface Seen {
  readonly events: number;
  readonly p50: number;
  readonly p99: number;
}

/** How late events come to a client, in ms. */
export class Latencies {
  private times: number[] = [];
  private since = Number.POSITIVE_INFINITY;

  /** Only what is emitted from now on counts. */
  start(): void {
    this.since = stamp();
  }

  /** An event of `eventOf`, or text that begins with one. */
  saw(text: string): void {
    const sent = Number(text.slice(8, 24));
    if (sent >= this.since) this.times.push(stamp() - sent);
  }

  result(): Seen {
    const sorted = this.times.sort((a, b) => a - b);
    return { events: sorted.length, p50: percentile(sorted, 0.5) / 1_000, p99: percentile(sorted, 0.99) / 1_000 };
  }
}

/** Takes everything that comes. */
export const readAll = (reader: JobReader, latencies: Latencies): void => {
  const pump = (): void => {
    for (let taken = reader.take(); taken && taken.what !== 'end'; taken = reader.take()) {
      if (taken.what === 'events') for (const { data } of taken.events) latencies.saw(data);
    }
  };
  reader.onWake(pump);
  pump();
};

/** Another process of a bench. It is told one thing at a time and has one answer to each. */
export class Process {
  private readonly child: ChildProcess;

  constructor(script: string, options: unknown) {
    this.child = fork(join(import.meta.dirname, script), [JSON.stringify(options)]);
  }

  async answer<T>(): Promise<T> {
    const gone = new AbortController();
    const left = once(this.child, 'exit', { signal: gone.signal }).then(() => {
      throw new Error('A process of the bench has ended too early.');
    });
    const [message] = await Promise.race([once(this.child, 'message'), left]);
    gone.abort();
    left.catch(nothing);
    return message as T;
  }

  ask<T>(message: string): Promise<T> {
    const answer = this.answer<T>();
    this.child.send(message);
    return answer;
  }

  async stop(): Promise<void> {
    const left = once(this.child, 'exit');
    this.child.disconnect();
    await left;
  }
}

/** The other end of a `Process`: its options, and what it does when it is told something. */
export const optionsOfProcess = <T>(): T => JSON.parse(process.argv[2] ?? '{}') as T;

export const serve = (ready: unknown, answers: Readonly<Record<string, () => unknown>>): void => {
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message) => {
    void Promise.resolve(answers[String(message)]?.()).then((answer) => process.send?.(answer));
  });
  process.send?.(ready);
};
