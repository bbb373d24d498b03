// npm run bench:jobs: many jobs that emit at a fixed rate, on the memory store and on a Redis of its own on loopback: how
// late their events come to who follows them, and what that costs. Every line has its own processes.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Jobs } from '../src/jobs/jobs.ts';
import { type RunningRedis, startRedis } from '../test/support/redis.ts';
import type { ClientOptions } from './jobs-client.ts';
import type { Emitted, OwnerOptions, OwnerReady } from './jobs-owner.ts';
import { KIND, openJobs, Process, type Seen } from './jobs-shared.ts';
import { cpuMicros } from './support.ts';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '200' },
    rate: { type: 'string', default: '50' },
    size: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '10' },
    store: { type: 'string', default: 'memory,redis' },
    clients: { type: 'string', default: 'nobody,reader,replica,http' },
    empty: { type: 'string', default: '20000' },
  },
});
type Row = Record<string, string | number>;

/** Who follows the jobs; the same for all of them. */
const CLIENTS: Readonly<Record<string, string>> = {
  nobody: 'nobody',
  reader: 'same process',
  replica: 'other replica',
  http: 'HTTP',
};

const rounded = (x: number, digits = 1): number => Number(x.toFixed(digits));

const measure = async (client: string, redis: RunningRedis | undefined): Promise<Row> => {
  const url = redis?.url;
  const owner = new Process('jobs-owner.js', {
    url,
    jobs: Number(values.jobs),
    rate: Number(values.rate),
    size: Number(values.size),
    seconds: Number(values.seconds),
  } satisfies OwnerOptions);
  const { ids, port } = await owner.answer<OwnerReady>();
  let reading: Process | undefined;
  if (client === 'reader') {
    await owner.ask('read');
    reading = owner;
  } else if (client !== 'nobody') {
    const where = client === 'replica' ? { url: url ?? '' } : { port };
    reading = new Process('jobs-client.js', { ids, ...where } satisfies ClientOptions);
    await reading.answer();
  }
  await owner.ask('warmUp');
  await reading?.ask('start');
  const storePid = redis?.child.pid;
  const storeCpu = storePid ? cpuMicros(storePid) : 0;
  const { events, ms, cpuMicros: used, batches } = await owner.ask<Emitted>('emit');
  const storeUsed = storePid ? cpuMicros(storePid) - storeCpu : 0;
  await sleep(500); // what is still on its way
  const seen = await reading?.ask<Seen>('result');
  for (const child of new Set([owner, reading])) await child?.stop();
  if (seen && seen.events !== events) console.log(`${client}: ${seen.events} of ${events} events have arrived`);
  return {
    store: redis ? 'redis' : 'memory',
    'followed by': CLIENTS[client] ?? client,
    'p50 ms': seen ? rounded(seen.p50, 2) : '',
    'p99 ms': seen ? rounded(seen.p99, 2) : '',
    'events/s': Math.round((events / ms) * 1_000),
    'events/batch': rounded(events / batches, 2),
    'us CPU/event': rounded(used / events),
    'us Redis CPU/event': redis ? rounded(storeUsed / events) : '',
  };
};

/** Jobs that end at once, some of them at a time. */
const emptyJobs = async (jobs: Jobs, count: number, atOnce: number, redis: RunningRedis | undefined): Promise<Row> => {
  const storePid = redis?.child.pid;
  let left = count;
  const worker = async (): Promise<void> => {
    for (; left > 0; left--) {
      await new Promise<void>((resolve, reject) => {
        jobs
          .start({ kind: KIND, principal: 'bench' }, (job) => job.end('completed', '{}').then(resolve, reject))
          .catch(reject);
      });
    }
  };
  const storeCpu = storePid ? cpuMicros(storePid) : 0;
  const cpu = process.cpuUsage();
  const begin = performance.now();
  await Promise.all(Array.from({ length: atOnce }, worker));
  const ms = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  return {
    store: redis ? 'redis' : 'memory',
    'at a time': atOnce,
    'jobs/s': Math.round((count / ms) * 1_000),
    'us CPU/job': rounded((user + system) / count),
    'us Redis CPU/job': storePid ? rounded((cpuMicros(storePid) - storeCpu) / count) : '',
  };
};

const listed = (text: string): string[] => text.split(',').filter(Boolean);
const streams: Row[] = [];
const empty: Row[] = [];
for (const store of listed(values.store)) {
  const redis = store === 'redis' ? await startRedis() : undefined;
  for (const client of listed(values.clients)) {
    if (redis || client !== 'replica') streams.push(await measure(client, redis));
  }
  const count = Number(values.empty);
  if (count > 0) {
    const jobs = await openJobs(redis?.url);
    await emptyJobs(jobs, Math.min(count, 2_000), 64, redis); // until the code is warm
    empty.push(await emptyJobs(jobs, Math.ceil(count / 4), 1, redis));
    empty.push(await emptyJobs(jobs, count, 64, redis));
    await jobs.close();
  }
  await redis?.stop();
}
if (streams.length > 0) {
  console.log(
    `${values.jobs} jobs that emit ${values.rate} events/s of ${values.size} bytes each, ${values.seconds} s`,
  );
  console.table(streams);
}
if (empty.length > 0) {
  console.log('jobs that start and end with one event');
  console.table(empty);
}
process.exit(0);
