// The replica that does the work of bench/jobs.ts: jobs that emit at a fixed rate, followed by nobody, by readers in this
// process, or over HTTP.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type JobDialect, jobEncoders, numberOf } from '../src/jobs/dialect.ts';
import { resumeJob } from '../src/jobs/resume.ts';
import type { Job } from '../src/jobs/writer.ts';
import { Heartbeat } from '../src/sse/heartbeat.ts';
import { TimerWheel } from '../src/sse/timer-wheel.ts';
import { eventOf, KIND, Latencies, openJobs, optionsOfProcess, readAll, serve } from './jobs-shared.ts';

export interface OwnerOptions {
  readonly url: string | undefined;
  readonly jobs: number;
  readonly rate: number;
  readonly size: number;
  readonly seconds: number;
}

export interface OwnerReady {
  readonly ids: readonly string[];
  readonly port: number;
}

export interface Emitted {
  readonly events: number;
  readonly ms: number;
  readonly cpuMicros: number;
  readonly batches: number;
}

const options = optionsOfProcess<OwnerOptions>();
let batches = 0;
const jobs = await openJobs(options.url, {
  batch: () => {
    batches++;
  },
});

const running: Job[] = [];
const ids: string[] = [];
for (let i = 0; i < options.jobs; i++) {
  const { id } = await jobs.start({ kind: KIND, principal: 'bench' }, (job) => {
    running.push(job);
    return new Promise(() => {}); // until the process ends
  });
  ids.push(id);
}

const dialect: JobDialect = {
  encoders: jobEncoders(({ seq, data }) => `id: ${seq}\ndata: ${data}\n\n`),
  heartbeat: new Heartbeat(() => ':\n\n'),
  reset: () => 'event: reset\ndata:\n\n',
  positionOf: numberOf,
};
const wheel = new TimerWheel().start();
const stream = { dialect, wheel, heartbeatSeconds: 15, slowMs: 30_000, expiresAt: Number.POSITIVE_INFINITY };
const server = createServer((req, res) => {
  const id = req.url?.slice(1) ?? '';
  void resumeJob(req, res, { ...stream, jobs, id, principal: 'bench', after: undefined, closed: () => {} });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

/** All jobs in turn, so that what is due is spread evenly and not emitted at the same moment by everybody. */
const emit = async (seconds: number): Promise<Emitted> => {
  const event = eventOf(options.size);
  const perMs = (options.jobs * options.rate) / 1_000;
  const before = batches;
  const cpu = process.cpuUsage();
  const begin = performance.now();
  let events = 0;
  for (let ms = 0; ms < seconds * 1_000; ms = performance.now() - begin) {
    for (; events < ms * perMs; events++) void running[events % running.length]?.emit(event());
    await sleep(1);
  }
  const { user, system } = process.cpuUsage(cpu);
  return { events, ms: performance.now() - begin, cpuMicros: user + system, batches: batches - before };
};

const latencies = new Latencies();
serve({ ids, port: (server.address() as AddressInfo).port } satisfies OwnerReady, {
  read: async () => {
    for (const id of ids) {
      const reader = await jobs.attach(id, { after: 0 });
      if (reader) readAll(reader, latencies);
    }
    return true;
  },
  warmUp: () => emit(2),
  start: () => {
    latencies.start();
    return true;
  },
  emit: () => emit(options.seconds),
  result: () => latencies.result(),
});
