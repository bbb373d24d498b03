import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { lastWords } from '../../src/jobs/kind.ts';
import type { Job } from '../../src/jobs/writer.ts';
import { eventually } from '../streams/logs.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startCluster } from '../support/redis.ts';
import { type Follower, follow, listing, type Replica, redisPlace, testKind } from './replicas.ts';
import { Site } from './site.ts';

const place = redisPlace();
const kind = testKind({ name: 'plain' });

beforeAll(() => place.start());
afterAll(() => place.stop());

const begin = async (replica: Replica, wanted = kind): Promise<{ id: string; job: Job }> => {
  let begun: (job: Job) => void = () => {};
  const job = new Promise<Job>((resolve) => {
    begun = resolve;
  });
  const { id } = await replica.jobs.start({ kind: wanted, principal: 'ann' }, async (running) => {
    begun(running);
    await new Promise<void>((resolve) => {
      running.signal.addEventListener('abort', () => resolve());
    });
  });
  return { id, job: await job };
};

const logKey = (id: string): string => `sluice:{0}:j:${id}:l`;
const jobKey = (id: string): string => `sluice:{0}:j:${id}`;

describe('jobs in Redis', () => {
  let a: Replica;
  let b: Replica;

  beforeEach(async () => {
    await place.clear();
    a = await place.replica({ kinds: [kind], times: { lingerMs: 10 } });
    b = await place.replica({ kinds: [kind], times: { lingerMs: 10 } });
  });

  it('are kept after their end for as long as their kind says, and their stream for as long as it says', async () => {
    const brief = testKind({ name: 'brief', keepMs: 30_000, logMs: 10_000, snapshot: listing });
    for (const { jobs } of [a, b]) jobs.declare(brief);
    const { id, job } = await begin(a, brief);
    await job.emit('one');
    await job.emit('two');
    expect(await place.admin.pttl(jobKey(id))).toBe(-1);
    await job.end('completed', 'end');
    const [record, stream] = [await place.admin.pttl(jobKey(id)), await place.admin.pttl(logKey(id))];
    expect(record).toBeGreaterThan(25_000);
    expect(record).toBeLessThanOrEqual(30_000);
    expect(stream).toBeGreaterThan(5_000);
    expect(stream).toBeLessThanOrEqual(10_000);
    await place.admin.del(logKey(id)); // as if its time had come
    await sleep(30); // and what was in memory has left
    for (const replica of [a, b]) {
      const late = await follow(replica, id, 0);
      await eventually(() => late.ended !== undefined);
      expect(late).toMatchObject({ resets: ['collapsed 3 one|two'], seen: ['end'], ended: 'completed' });
      const inTime = await follow(replica, id, 2);
      await eventually(() => inTime.ended !== undefined);
      expect(inTime).toMatchObject({ resets: [], seen: ['end'] });
    }
  });

  it('are given again to a Redis that was emptied, without a word to anybody', async () => {
    const { id, job } = await begin(a);
    await job.emit('one');
    const here = await follow(a, id);
    const there = await follow(b, id);
    const answer = job.ask('q', 'two');
    await eventually(() => there.last === 2);
    await place.admin.flushall();
    await eventually(async () => (await place.admin.exists(jobKey(id))) === 1);
    await eventually(() => (a.observed.counts['restored plain'] ?? 0) > 0);
    expect(await b.jobs.approve(id, 'ann', 'q', { approved: true })).toBe('decided');
    expect(await answer).toEqual({ approved: true });
    await job.emit('three');
    await job.end('completed', 'end');
    const late = await follow(b, id);
    for (const follower of [here, there, late]) {
      await eventually(() => follower.ended !== undefined);
      expect(follower).toMatchObject({ seen: ['one', 'two', 'three', 'end'], resets: [], ended: 'completed' });
    }
  });

  it('are brought forward again in a Redis that went back', async () => {
    const { id, job } = await begin(a);
    for (const text of ['one', 'two', 'three']) await job.emit(text);
    await eventually(async () => (await place.admin.hget(jobKey(id), 'last')) === '3');
    await place.admin.hset(jobKey(id), 'last', '1');
    await place.admin.xtrim(logKey(id), 'MAXLEN', 0);
    await place.admin.xadd(logKey(id), '1-0', 'd', 'one').catch(() => {}); // ids only rise: the rest is enough
    await job.emit('four');
    await job.end('completed', 'end');
    const late = await follow(b, id);
    await eventually(() => late.ended !== undefined);
    expect(late.seen).toEqual(['one', 'two', 'three', 'four', 'end']);
    expect(a.observed.counts['restored plain']).toBe(1);
  });

  it('can be stopped, answered and reaped when Redis is full', async () => {
    const { id, job } = await begin(a);
    const answer = job.ask('q', 'one');
    await eventually(async () => (await place.admin.hget(jobKey(id), 'last')) === '1');
    await place.admin.config('SET', 'maxmemory', '1');
    try {
      await expect(a.jobs.start({ kind, principal: 'ann' }, async () => {})).rejects.toMatchObject({
        code: 'unavailable',
      });
      expect(await b.jobs.approve(id, 'ann', 'q', { approved: true })).toBe('decided');
      expect(await answer).toEqual({ approved: true });
      expect(await b.jobs.cancel(id, 'ann', 'enough')).toEqual({ state: 'running' });
      await eventually(() => job.signal.aborted);
      await place.admin.del(`sluice:{0}:lease:${a.name}`);
      await a.store.renew(a.name);
      expect(await b.store.alive(a.name)).toBe(true);
      const record = await b.jobs.find(id);
      if (!record) throw new Error('gone');
      const end = { state: 'interrupted', keepMs: 1_000, logMs: 1_000, snapshot: undefined } as const;
      const last = { seq: 2, data: 'over', end: 'interrupted' } as const;
      expect(await b.store.reap(record, { events: [last], asks: [], end })).toBe('reaped');
    } finally {
      await place.admin.config('SET', 'maxmemory', '0');
    }
    expect(await a.jobs.find(id)).toMatchObject({ state: 'interrupted', last: 2 });
  });

  it('let their work wait while Redis is away, and go on when it is back', async () => {
    const large = testKind({ name: 'large', maxBytes: 10_000_000 });
    for (const { jobs } of [a, b]) jobs.declare(large);
    const { id, job } = await begin(a, large);
    const there = await follow(b, id);
    await job.emit('first');
    await eventually(() => there.last === 1);
    place.server.child.kill('SIGSTOP');
    const size = 100_000;
    let emitted = 1;
    const emitting = (async () => {
      while (emitted < 31) {
        await job.emit('x'.repeat(size));
        emitted++;
      }
    })();
    await sleep(300);
    expect(emitted).toBeGreaterThan(5);
    expect(emitted).toBeLessThan(15); // a megabyte waits, then the work does
    place.server.child.kill('SIGCONT');
    await emitting;
    await job.end('completed', 'end');
    await eventually(() => there.ended !== undefined);
    expect(there.numbers).toEqual(Array.from({ length: 32 }, (_, i) => i + 1));
    expect([a, b].map(({ observed }) => observed.counts['reaped large'] ?? 0)).toEqual([0, 0]);
  });

  it('are not started while Redis is away, now or later', async () => {
    place.server.child.kill('SIGSTOP');
    let ran = false;
    await expect(
      a.jobs.start({ kind, principal: 'ann', idempotency: { key: 'k', fingerprint: 'f' } }, async () => {
        ran = true;
      }),
    ).rejects.toMatchObject({ code: 'unavailable' });
    place.server.child.kill('SIGCONT');
    await eventually(async () => (await b.store.owners()).size === 0 && (await place.admin.keys('*:j:*')).length === 0);
    expect(ran).toBe(false);
    const again = { kind, principal: 'ann', idempotency: { key: 'k', fingerprint: 'f' } };
    await eventually(() =>
      a.jobs
        .start(again, async (job) => job.end('completed', 'end'))
        .then(
          ({ created }) => created,
          () => false,
        ),
    );
  });

  it('open a stream that waits when Redis is away', async () => {
    const site = await new Site(b).listen();
    const { id, job } = await begin(a);
    await job.emit('one');
    await eventually(async () => (await place.admin.hget(jobKey(id), 'last')) === '1');
    place.server.child.kill('SIGSTOP');
    const stream = new RawStream(site.port, `/${id}`);
    await eventually(() => stream.status === 200);
    expect(stream.frames).toEqual([]);
    place.server.child.kill('SIGCONT');
    await eventually(() => stream.frames.length === 1);
    await job.end('completed', 'end');
    await eventually(() => stream.ended);
    expect(stream.body).toBe('id: 1\ndata: one\n\nid: 2\ndata: end\n\n');
    await site.stop();
  });

  it('are found after a loss that their owner has not repaired yet', async () => {
    const { id, job } = await begin(a);
    await job.emit('one');
    await eventually(async () => (await place.admin.hget(jobKey(id), 'last')) === '1');
    await place.admin.flushall();
    const reader = await b.jobs.attach(id, { after: 0 });
    expect(reader?.take()).toMatchObject({ what: 'events', events: [{ seq: 1, data: 'one' }] });
    reader?.close();
    await job.end('completed', 'end');
  });

  it('end for those who follow them when both the owner and the record are gone', async () => {
    await place.clear();
    const times = { renewMs: 100, lookMs: 50, holdOffMs: 300, lingerMs: 10 };
    const kinds = [kind];
    a = await place.replica({ kinds, times });
    b = await place.replica({ kinds, times });
    const c = await place.replica({ kinds, times });
    const { id, job } = await begin(a);
    await job.emit('one');
    const followers: Follower[] = [];
    for (const replica of [b, c]) followers.push(await follow(replica, id));
    await eventually(() => followers.every(({ last }) => last === 1));
    await a.jobs.close();
    await place.admin.flushall();
    for (const follower of followers) {
      await eventually(() => follower.ended !== undefined);
      expect(follower).toMatchObject({ ended: 'interrupted', resets: [] });
      expect(follower.seen).toEqual([
        'one',
        'note 2',
        'store_lost 3: The gateway that ran this job is gone, and so is its record.',
      ]);
    }
    const late = await follow(c, id, 3);
    expect(late.ended).toBe('interrupted');
    expect(late.seen).toEqual([]);
  });

  // An owner was frozen until its job had been ended by others and forgotten. When it came back it took the job for one
  // that the store had lost, restored it as running and wrote on, behind an end that others had seen.
  it('stay fenced for longer than an owner can be frozen, however briefly their kind is kept', async () => {
    const fleeting = testKind({ name: 'fleeting', keepMs: 1, logMs: 1 });
    await place.clear();
    const times = { renewMs: 100, lookMs: 50, holdOffMs: 300, lingerMs: 10 };
    a = await place.replica({ kinds: [fleeting], times });
    b = await place.replica({ kinds: [fleeting], times });
    const { id, job } = await begin(a, fleeting);
    const record = await b.jobs.find(id);
    if (!record) throw new Error('gone');
    const log = { snapshot: undefined, from: 1, last: 0, events: [] };
    const words = lastWords(fleeting, record, log, { cause: 'owner_lost', message: 'gone' });
    expect(await b.store.reap(record, words)).toBe('reaped');
    await eventually(async () => (await place.admin.exists(logKey(id))) === 0);
    await expect(job.end('completed', 'too late')).rejects.toThrow();
    expect(await place.admin.hget(jobKey(id), 'state')).toBe('interrupted');
    expect(a.observed.counts).toMatchObject({ 'fenced fleeting': 1 });
  });
});

describe('jobs in a cluster', () => {
  let nodes: RunningRedis[];
  beforeAll(async () => {
    nodes = await startCluster();
  });
  afterAll(async () => {
    await place.clear();
    await Promise.all(nodes.map((node) => node.stop()));
  });

  it('live in every partition, and a key leads to its job', async () => {
    await place.clear();
    const settings = {
      kind: 'cluster' as const,
      nodes: nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
      partitions: 4,
    };
    const a = await place.replica({ kinds: [kind], settings });
    const b = await place.replica({ kinds: [kind], settings });
    const work = async (job: Job): Promise<void> => {
      await job.emit('one');
      await job.end('completed', 'end');
    };
    const ids: string[] = [];
    for (let i = 0; i < 24; i++) {
      const idempotency = { key: `key ${i}`, fingerprint: 'f' };
      const first = await a.jobs.start({ kind, principal: 'ann', idempotency }, work);
      const again = await b.jobs.start({ kind, principal: 'ann', idempotency }, work);
      expect(again).toEqual({ id: first.id, created: false });
      ids.push(first.id);
    }
    for (const id of ids) {
      const follower = await follow(b, id);
      await eventually(() => follower.ended !== undefined);
      expect(follower.seen).toEqual(['one', 'end']);
    }
    const used = new Set<string>();
    for (const { port } of nodes) {
      const redis = new Redis(port, '127.0.0.1');
      for (const key of await redis.keys('*:j:*')) used.add(/\{\d+\}/.exec(key)?.[0] ?? '');
      redis.disconnect();
    }
    expect(used.size).toBe(4);
    await a.jobs.stop(0);
    expect(await b.store.alive(a.name)).toBe(false);
  });
});
