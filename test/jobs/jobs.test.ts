import { setTimeout as sleep } from 'node:timers/promises';
import { JobCancelled, type JobError, JobOver } from '../../src/jobs/errors.ts';
import { Jobs } from '../../src/jobs/jobs.ts';
import { RedisJobStore } from '../../src/jobs/redis/redis-store.ts';
import type { Job } from '../../src/jobs/writer.ts';
import { RedisLog } from '../../src/streams/redis/redis-log.ts';
import { parseRedisUrl } from '../../src/streams/redis/settings.ts';
import { eventually, keepAll, ready } from '../streams/logs.ts';
import { Counting, follow, listing, memoryPlace, type Place, type Replica, redisPlace, testKind } from './replicas.ts';

const places: Place[] = [memoryPlace(), redisPlace()];

/** Work that does what it is told from outside. */
const puppet = (): { work: (job: Job) => Promise<void>; job: Promise<Job>; done: () => void } => {
  let begun: (job: Job) => void = () => {};
  let done: () => void = () => {};
  const job = new Promise<Job>((resolve) => {
    begun = resolve;
  });
  const end = new Promise<void>((resolve) => {
    done = resolve;
  });
  return {
    job,
    done,
    work: async (running) => {
      begun(running);
      await end;
    },
  };
};

// The first try came before the connection was there, the next one seconds later; until then nobody could send it work.
it('is alive as soon as the store can be reached', async () => {
  const place = redisPlace();
  await place.start();
  const name = 'young';
  const log = new RedisLog({ settings: parseRedisUrl(place.server.url), limitsOf: keepAll, replica: name });
  const store = new RedisJobStore(log.parts);
  const jobs = new Jobs({ store, replica: name, observe: new Counting(), times: { renewMs: 60_000 } });
  try {
    await ready(log);
    await eventually(() => store.alive(name).catch(() => false));
  } finally {
    await jobs.close();
    await log.close();
    await place.stop();
  }
}, 20_000);

describe.each(places)('jobs on $name', (place) => {
  const kind = testKind();
  let a: Replica;
  let b: Replica;

  beforeAll(() => place.start());
  afterAll(() => place.stop());
  beforeEach(async () => {
    await place.clear();
    a = await place.replica({ kinds: [kind] });
    b = await place.replica({ kinds: [kind] });
  });
  afterEach(() => {
    expect([...a.failures, ...b.failures]).toEqual([]);
  });

  const begin = async (): Promise<{ id: string; job: Job; done: () => void }> => {
    const { work, job, done } = puppet();
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, work);
    return { id, job: await job, done };
  };

  it('shows every event, in order and with its end, on the replica that runs it and on another', async () => {
    const { id, job } = await begin();
    const here = await follow(a, id);
    const there = await follow(b, id);
    for (let i = 1; i <= 5; i++) await job.emit((seq) => `event ${seq}`);
    await job.end('completed', (seq) => `end ${seq}`);
    const all = ['event 1', 'event 2', 'event 3', 'event 4', 'event 5', 'end 6'];
    for (const follower of [here, there]) {
      await eventually(() => follower.ended !== undefined);
      expect(follower).toMatchObject({ seen: all, numbers: [1, 2, 3, 4, 5, 6], ended: 'completed', resets: [] });
    }
  });

  it('attaches from any number, while it runs and after its end', async () => {
    const { id, job } = await begin();
    for (let i = 1; i <= 5; i++) await job.emit(String(i));
    const whole = await follow(a, id);
    await eventually(() => whole.last === 5); // stored: before that, 3 may lie ahead of everything
    const running = await follow(b, id, 3);
    await eventually(() => running.last === 5);
    expect(running).toMatchObject({ seen: ['4', '5'], resets: [] });
    await job.end('completed', 'end');
    for (const replica of [a, b]) {
      const late = await follow(replica, id, 4);
      await eventually(() => late.ended !== undefined);
      expect(late.seen).toEqual(['5', 'end']);
    }
  });

  it('puts what is emitted while a batch is on its way into the next one', async () => {
    const { id, job } = await begin();
    const follower = await follow(a, id);
    for (let i = 1; i <= 300; i++) void job.emit(String(i));
    await job.end('completed', 'end');
    await eventually(() => follower.ended !== undefined);
    expect(follower.numbers).toEqual(Array.from({ length: 301 }, (_, i) => i + 1));
    expect(a.observed.batches.length).toBeLessThan(10);
    expect(a.observed.batches.reduce((sum, n) => sum + n, 0)).toBe(301);
  });

  it('knows one terminal event: what comes after it is refused', async () => {
    const { id, job } = await begin();
    await job.end('completed', 'end');
    await expect(job.emit('more')).rejects.toThrow('over');
    await expect(job.end('failed', 'again')).rejects.toThrow('over');
    expect(await b.jobs.find(id)).toMatchObject({ state: 'completed', last: 1 });
  });

  it('ends a job whose work throws or forgets to end it, in the words of its kind', async () => {
    const thrown = await a.jobs.start({ kind, principal: 'ann' }, async (job) => {
      await job.emit('one');
      throw new Error('out of luck');
    });
    const forgotten = await a.jobs.start({ kind, principal: 'ann' }, async () => {});
    const first = await follow(b, thrown.id);
    const second = await follow(b, forgotten.id);
    await eventually(() => first.ended !== undefined && second.ended !== undefined);
    expect(first).toMatchObject({ seen: ['one', 'note 2', 'error 3: out of luck'], ended: 'failed' });
    expect(second.seen).toEqual(['note 1', 'error 2: The job has stopped without a result.']);
  });

  it('has its first events from the moment it exists', async () => {
    const { work } = puppet();
    const { id } = await a.jobs.start({ kind, principal: 'ann', events: ['hello', 'there'] }, work);
    expect(await b.jobs.find(id)).toMatchObject({ state: 'running', last: 2 });
    const follower = await follow(b, id, 1);
    expect(follower.seen).toEqual(['there']);
  });

  it.each(['a', 'b'] as const)('is cancelled from replica %s; the work has the last word', async (name) => {
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (job) => {
      await job.emit('partial');
      await new Promise<void>((resolve) => {
        job.signal.addEventListener('abort', () => resolve());
      });
      expect(job.signal.reason).toBeInstanceOf(JobCancelled);
      await job.end('cancelled', `stopped: ${job.signal.reason.message}`);
    });
    const follower = await follow(b, id);
    const replica = { a, b }[name];
    expect(await replica.jobs.cancel(id, 'ann', 'enough')).toEqual({ state: 'running' });
    expect(await replica.jobs.cancel(id, 'ann', 'again')).toBeDefined();
    await eventually(() => follower.ended !== undefined);
    expect(follower).toMatchObject({ seen: ['partial', 'stopped: enough'], ended: 'cancelled' });
    expect(await replica.jobs.cancel(id, 'ann', 'late')).toEqual({ state: 'cancelled' });
  });

  it('ends a cancelled job that does not listen', async () => {
    const deaf = await place.replica({ kinds: [kind], times: { cancelMs: 50 } });
    const { work } = puppet();
    const { id } = await deaf.jobs.start({ kind, principal: 'ann' }, work);
    const follower = await follow(b, id);
    await b.jobs.cancel(id, 'ann', 'enough');
    await eventually(() => follower.ended !== undefined);
    expect(follower).toMatchObject({ seen: ['note 1', 'cancelled 2: enough'], ended: 'cancelled' });
  });

  it.each(['a', 'b'] as const)('takes an answer on replica %s: the first one holds', async (name) => {
    const { id, job } = await begin();
    const follower = await follow(b, id);
    const answer = job.ask('q1', 'may I?');
    await eventually(() => follower.last === 1);
    const replica = { a, b }[name];
    expect(await replica.jobs.approve(id, 'ann', 'nonsense', { approved: true })).toBeUndefined();
    expect(await replica.jobs.approve(id, 'bob', 'q1', { approved: true })).toBeUndefined();
    expect(await replica.jobs.approve(id, 'ann', 'q1', { approved: true, note: 'go on' })).toBe('decided');
    expect(await replica.jobs.approve(id, 'ann', 'q1', { approved: true })).toBe('same');
    expect(await replica.jobs.approve(id, 'ann', 'q1', { approved: false })).toBe('conflict');
    expect(await answer).toEqual({ approved: true, note: 'go on' });
    await job.end('completed', 'end');
    expect(await replica.jobs.approve(id, 'ann', 'q1', { approved: true })).toBeUndefined();
  });

  it('answers an own question that nobody has answered, and hears of the answer if somebody has', async () => {
    const { id, job } = await begin();
    const first = job.ask('q1', 'may I?');
    const second = job.ask('q2', 'and this?');
    await eventually(async () => (await a.jobs.find(id))?.last === 2);
    expect(await job.decide('q1', { approved: false, note: 'too late' })).toEqual({
      approved: false,
      note: 'too late',
    });
    expect(await first).toMatchObject({ approved: false });
    await b.store.approve(id, 'ann', 'q2', { approved: true });
    expect(await job.decide('q2', { approved: false })).toEqual({ approved: true });
    expect(await second).toEqual({ approved: true });
    await job.end('completed', 'end');
  });

  it('does not exist for anybody else', async () => {
    const { id, job } = await begin();
    await job.emit('secret');
    for (const replica of [a, b]) {
      expect(await replica.jobs.find(id, 'bob')).toBeUndefined();
      expect(await replica.jobs.attach(id, { principal: 'bob', after: 0 })).toBeUndefined();
      expect(await replica.jobs.cancel(id, 'bob', 'mine')).toBeUndefined();
      expect(await replica.jobs.attach('nothing', { after: 0 })).toBeUndefined();
      expect(await replica.jobs.find(id, 'ann')).toMatchObject({ principal: 'ann', state: 'running' });
    }
    await job.end('completed', 'end');
  });

  it('leads the same idempotency key to the same job, on any replica', async () => {
    let runs = 0;
    const wanted = { kind, principal: 'ann', idempotency: { key: 'k', fingerprint: 'f' } };
    const work = async (job: Job): Promise<void> => {
      runs++;
      await job.end('completed', 'end');
    };
    const started = await Promise.all([a, b, a, b].map(({ jobs }) => jobs.start(wanted, work)));
    expect(new Set(started.map(({ id }) => id)).size).toBe(1);
    expect(started.filter(({ created }) => created)).toHaveLength(1);
    await eventually(async () => (await a.jobs.find(started[0]?.id ?? ''))?.state === 'completed');
    expect((await b.jobs.start(wanted, work)).created).toBe(false);
    const other = { ...wanted, idempotency: { key: 'k', fingerprint: 'g' } };
    await expect(b.jobs.start(other, work)).rejects.toMatchObject({ code: 'conflict' } satisfies Partial<JobError>);
    expect((await b.jobs.start({ ...wanted, principal: 'bob' }, work)).created).toBe(true);
    expect(runs).toBe(2);
  });

  it('has another replica do the work it is declared for', async () => {
    const remote = testKind({ name: 'remote' });
    a.jobs.declare(remote);
    const seen: string[] = [];
    b.jobs.declare(remote, async (job, input) => {
      seen.push(`${input} for ${job.principal}, ${job.about}`);
      await job.emit('working');
      await job.end('completed', `done: ${input}`);
    });
    const wanted = { kind: remote, principal: 'ann', about: 'something' };
    const { id } = await a.jobs.dispatch(wanted, b.name, 'the input');
    const follower = await follow(a, id);
    await eventually(() => follower.ended !== undefined);
    expect(follower).toMatchObject({ seen: ['working', 'done: the input'], ended: 'completed' });
    expect(seen).toEqual(['the input for ann, something']);
    expect(await b.store.inbox(b.name)).toEqual([]);
    await expect(a.jobs.dispatch(wanted, 'nobody', 'x')).rejects.toMatchObject({ code: 'away' });
  });

  it('refuses more running jobs of a principal than there is room for', async () => {
    let taken = 0;
    const limited = await place.replica({
      kinds: [kind],
      admit: async () => {
        if (taken === 2) return { allowed: false, reason: 'principal' };
        taken++;
        let released = false;
        return {
          allowed: true,
          release: () => {
            if (!released) taken--;
            released = true;
          },
        };
      },
    });
    const one = puppet();
    const two = puppet();
    await limited.jobs.start({ kind, principal: 'ann' }, one.work);
    await limited.jobs.start({ kind, principal: 'ann' }, two.work);
    await expect(limited.jobs.start({ kind, principal: 'ann' }, one.work)).rejects.toMatchObject({ code: 'limit' });
    await (await one.job).end('completed', 'end');
    await eventually(() => taken === 1 || Promise.resolve(one.done()).then(() => taken === 1));
    await limited.jobs.start({ kind, principal: 'ann' }, puppet().work);
  });

  it('collapses a long stream into a snapshot, and tells who comes late', async () => {
    const long = testKind({ name: 'long', maxEvents: 10, snapshot: listing });
    a.jobs.declare(long);
    b.jobs.declare(long);
    const { work, job } = puppet();
    const { id } = await a.jobs.start({ kind: long, principal: 'ann' }, work);
    const running = await job;
    const live = await follow(b, id);
    for (let i = 1; i <= 25; i++) {
      await running.emit(String(i));
      await eventually(() => live.last === i);
    }
    const record = await b.jobs.find(id);
    const from = record?.from ?? 0;
    expect(from).toBeGreaterThan(15);
    for (const replica of [a, await place.replica({ kinds: [long] })]) {
      const late = await follow(replica, id, 2);
      await eventually(() => late.last === 25);
      const before = Array.from({ length: from - 1 }, (_, i) => String(i + 1)).join('|');
      expect(late.resets).toEqual([`collapsed ${from} ${before}`]);
      expect(late.numbers).toEqual(Array.from({ length: 26 - from }, (_, i) => from + i));
      const ahead = await follow(replica, id, 23);
      await eventually(() => ahead.last === 25);
      expect(ahead).toMatchObject({ resets: [], numbers: [24, 25] });
    }
    expect(live).toMatchObject({ resets: [], numbers: Array.from({ length: 25 }, (_, i) => i + 1) });
  });

  it('fails a job that outgrows a kind that has no snapshot', async () => {
    const small = testKind({ name: 'small', maxEvents: 3 });
    a.jobs.declare(small);
    b.jobs.declare(small);
    const { id } = await a.jobs.start({ kind: small, principal: 'ann' }, async (job) => {
      for (;;) await job.emit('more');
    });
    const follower = await follow(b, id);
    await eventually(() => follower.ended !== undefined);
    expect(follower.ended).toBe('failed');
    expect(follower.seen).toEqual([
      'more',
      'more',
      'more',
      'note 4',
      'too_large 5: The job has produced more than it may.',
    ]);
  });

  it('ends a job even if its kind cannot say how', async () => {
    const mute = testKind({
      name: 'mute',
      ended: () => {
        throw new Error('no words');
      },
    });
    a.jobs.declare(mute);
    const { id } = await a.jobs.start({ kind: mute, principal: 'ann' }, () => Promise.reject(new Error('out of luck')));
    const follower = await follow(a, id);
    await eventually(() => follower.ended !== undefined);
    expect(follower).toMatchObject({ seen: ['{"error":"out of luck"}'], ended: 'failed' });
  });

  it('tells a reader whose number lies beyond the end, or is none, and gives it everything', async () => {
    const { id, job } = await begin();
    await job.emit('one');
    await job.end('completed', 'end');
    for (const replica of [a, b]) {
      const ahead = await follow(replica, id, 99);
      await eventually(() => ahead.ended !== undefined);
      expect(ahead).toMatchObject({ resets: ['ahead 1 '], seen: ['one', 'end'] });
      const reader = await replica.jobs.attach(id, { after: undefined });
      expect(reader?.take()).toMatchObject({ what: 'reset', reset: { reason: 'unknown', from: 1 } });
      reader?.close();
    }
  });

  it('lets running jobs finish when it stops, ends the rest, and takes no more', async () => {
    const quick = puppet();
    const slow = puppet();
    const first = await a.jobs.start({ kind, principal: 'ann' }, quick.work);
    const second = await a.jobs.start({ kind, principal: 'ann' }, slow.work);
    const one = await follow(b, first.id);
    const two = await follow(b, second.id);
    const stopped = a.jobs.stop(200);
    await sleep(20);
    await (await quick.job).end('completed', 'in time');
    await expect(a.jobs.start({ kind, principal: 'ann' }, quick.work)).rejects.toMatchObject({ code: 'stopping' });
    await stopped;
    await eventually(() => one.ended !== undefined && two.ended !== undefined);
    expect(one).toMatchObject({ seen: ['in time'], ended: 'completed' });
    expect(two.seen).toEqual(['note 1', 'shutdown 2: The gateway that ran this job has stopped.']);
    expect(two.ended).toBe('interrupted');
    expect(await b.store.alive(a.name)).toBe(false);
    expect([...(await b.store.owners()).keys()]).toEqual([]);
  });

  // Work that waits for somebody else, a model or a tool, never tries to emit and would go on for ever.
  it('tells the work of a job that it ends when it stops', async () => {
    const { id, job } = await begin();
    const { signal } = job;
    await a.jobs.stop(0);
    expect(signal.reason).toBeInstanceOf(JobOver);
    expect(await b.jobs.find(id)).toMatchObject({ state: 'interrupted' });
  });

  // It resolved as if the end had been stored, and the work took its result for delivered.
  it('tells the work when another replica has ended the job before it', async () => {
    const { id, job } = await begin();
    const record = await b.jobs.find(id);
    const end = { state: 'interrupted', keepMs: 60_000, logMs: 60_000, snapshot: undefined } as const;
    const events = [{ seq: 1, data: 'gone', end: end.state }];
    expect(record && (await b.store.reap(record, { events, asks: [], end }))).toBe('reaped');
    await expect(job.end('completed', 'end')).rejects.toBeInstanceOf(JobOver);
    expect(await b.jobs.find(id)).toMatchObject({ state: 'interrupted', last: 1 });
  });

  it('is not ended behind events that the one who ends it has not seen', async () => {
    const { id, job } = await begin();
    await job.emit('one');
    await eventually(async () => (await b.jobs.find(id))?.last === 1);
    const record = await b.jobs.find(id);
    if (!record) throw new Error('gone');
    await job.emit('two');
    await eventually(async () => (await b.jobs.find(id))?.last === 2);
    const end = { state: 'interrupted', keepMs: 1_000, logMs: 1_000, snapshot: undefined } as const;
    const last = { seq: 2, data: 'over', end: 'interrupted' } as const;
    expect(await b.store.reap(record, { events: [last], asks: [], end })).toBe('grown');
    expect(await b.jobs.find(id)).toMatchObject({ state: 'running', last: 2 });
    await job.end('completed', 'end');
  });

  it('ends the jobs of a replica that is gone, once and in the words of their kind', async () => {
    await place.clear();
    const times = { renewMs: 100, lookMs: 50, holdOffMs: 300 };
    a = await place.replica({ kinds: [kind], times });
    b = await place.replica({ kinds: [kind], times });
    const c = await place.replica({ kinds: [kind], times });
    const { id, job } = await begin();
    await job.emit('one');
    const there = await follow(b, id);
    await a.jobs.close();
    await a.store.retire(a.name);
    await eventually(() => there.ended !== undefined);
    expect(there).toMatchObject({ ended: 'interrupted' });
    expect(there.seen).toEqual(['one', 'note 2', 'owner_lost 3: The gateway that ran this job is gone.']);
    expect((b.observed.counts['reaped test'] ?? 0) + (c.observed.counts['reaped test'] ?? 0)).toBe(1);
    expect(await b.jobs.find(id)).toMatchObject({ state: 'interrupted', last: 3 });
  });
});
