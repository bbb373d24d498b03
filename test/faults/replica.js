// One of several gateways that share a store, as a process that can be stopped and killed. It runs the built code with the
// times of the product, does what the test asks over IPC, and reports whatever those who follow a job here get to see.
import { setTimeout as sleep } from 'node:timers/promises';
import { Jobs } from '../../dist/jobs/jobs.js';
import { RedisJobStore } from '../../dist/jobs/redis/redis-store.js';
import { RedisLog } from '../../dist/streams/redis/redis-log.js';
import { parseRedisUrl } from '../../dist/streams/redis/settings.js';

const { url, name, graceMs } = JSON.parse(process.argv[2]);
const { pid } = process;

// Every event says its number and who wrote it.
const kind = {
  name: 'test',
  keepMs: 300_000,
  logMs: 300_000,
  maxEvents: 100_000,
  maxBytes: 10_000_000,
  ended: ({ last }, { cause }) => [`${last + 1} ${pid}`, `${last + 2} ${pid} ${cause}`],
};

const counts = { reaped: 0, fenced: 0, restored: 0 };
const failures = [];
const count = (what) => () => {
  counts[what]++;
};

const log = new RedisLog({
  settings: parseRedisUrl(url),
  limitsOf: () => ({ events: 100, ageMs: 300_000 }),
  replica: name,
});
const store = new RedisJobStore(log.parts);
const jobs = new Jobs({
  store,
  replica: name,
  observe: {
    started: () => {},
    ended: () => {},
    first: () => {},
    batch: () => {},
    reaped: count('reaped'),
    fenced: count('fenced'),
    restored: count('restored'),
  },
  failed: (message, error) => failures.push(`${message} ${error?.stack ?? ''}`),
});
jobs.declare(kind);

/** What became of the work of each job of this process. */
const works = new Map();

/** Emits one event after another and then ends. `stubborn` work goes on trying whatever it is told. */
const working =
  ({ everyMs, events, stubborn }) =>
  async (job) => {
    const work = { refused: 0, aborted: null };
    works.set(job.id, work);
    job.signal.addEventListener('abort', () => {
      work.aborted = job.signal.reason.name;
    });
    for (let i = 0; i < events; i++) {
      await sleep(everyMs, undefined, stubborn ? {} : { signal: job.signal });
      try {
        await job.emit((seq) => `${seq} ${pid}`);
      } catch (error) {
        if (!stubborn) throw error;
        work.refused++;
      }
    }
    await job.end('completed', (seq) => `${seq} ${pid} completed`);
  };

/** Reports until this process ends, also what comes after the end of the job, if anything does. */
const report = (follower, reader) => {
  let ended = false;
  const pump = () => {
    for (let taken = reader.take(); taken; taken = reader.take()) {
      if (taken.what === 'end') {
        if (!ended) process.send({ follower, took: taken });
        ended = true;
        return;
      }
      if (taken.what === 'events') {
        taken = { what: 'events', events: taken.events.map(({ seq, data, end }) => ({ seq, data, end })) };
      }
      process.send({ follower, took: taken });
    }
  };
  reader.onWake(pump);
  pump();
};

const commands = {
  ready: async () => {
    while (!log.health().every(({ up, markAgeMs }) => up && markAgeMs !== undefined)) await sleep(5);
    while (!(await store.alive(name))) await sleep(5);
  },
  start: async (work) => (await jobs.start({ kind, principal: 'ann' }, working(work))).id,
  follow: async ({ follower, id, after }) => {
    const reader = await jobs.attach(id, { after });
    if (!reader) throw new Error(`There is no job ${id}.`);
    report(follower, reader);
  },
  stats: async () => ({ ...counts, failures, works: Object.fromEntries(works) }),
};

process.on('message', ({ call, command, argument }) => {
  commands[command](argument).then(
    (value) => process.send({ call, value }),
    (error) => process.send({ call, error: { message: error.message, code: error.code } }),
  );
});

const leave = async () => {
  await jobs.stop(graceMs);
  await log.close();
  // Nothing else may keep it alive: it ends by itself or not at all.
  process.disconnect();
};

process.once('SIGTERM', () => void leave());
