import { setImmediate as turn } from 'node:timers/promises';
import { JobOver } from '../../src/jobs/errors.ts';
import type { JobEvent } from '../../src/jobs/job.ts';
import { Jobs } from '../../src/jobs/jobs.ts';
import { MemoryJobStore } from '../../src/jobs/memory-store.ts';
import { JobTopics } from '../../src/jobs/redis/topics.ts';
import type { Watcher, WholeJob } from '../../src/jobs/store.ts';
import { Track } from '../../src/jobs/track.ts';
import { type Job, JobWriter } from '../../src/jobs/writer.ts';
import type { RedisPartition, TopicListener } from '../../src/streams/redis/partition.ts';
import { eventually } from '../streams/logs.ts';
import { Counting, Follower, follow, memoryPlace, testKind } from './replicas.ts';

/** What went wrong once, and how it was seen. */
describe('what jobs survive', () => {
  const kind = testKind();
  let now = Date.now();
  const place = memoryPlace(() => now);
  beforeEach(() => place.clear());
  afterAll(() => place.stop());

  // A replica that had just found its inbox empty, and was about to note that it had stopped looking, took the next bell
  // for one that it was still going to answer. On a store that rings only once, that work was never begun.
  it('hears the bell that rings while it finishes looking into its inbox', async () => {
    const begun: string[] = [];
    const work = async (job: Job, input: string): Promise<void> => {
      begun.push(input);
      await job.end('completed', 'end');
    };
    const a = await place.replica({ kinds: [kind] });
    const b = await place.replica({ kinds: [kind], work });
    const wanted = { kind, principal: 'ann' };
    for (let turns = 0; turns < 40; turns++) {
      const first = a.jobs.dispatch(wanted, b.name, `first ${turns}`);
      for (let i = 0; i < turns; i++) await Promise.resolve();
      const second = a.jobs.dispatch(wanted, b.name, `second ${turns}`);
      for (const { id } of await Promise.all([first, second])) {
        const follower = await follow(a, id);
        await eventually(() => follower.ended !== undefined, 2_000);
      }
    }
    expect(begun).toHaveLength(80);
  });

  // The command was taken out of the inbox before the owner had heard that its job exists, and nobody asked again.
  it('is cancelled by somebody who knows its name before its own replica knows that it exists', async () => {
    const a = await place.replica({ kinds: [kind] });
    const b = await place.replica({ kinds: [kind] });
    const create = a.store.create.bind(a.store);
    const created = jest.spyOn(a.store, 'create').mockImplementation(async (job) => {
      const answer = await create(job);
      expect(await b.jobs.cancel(job.id, 'ann', 'enough')).toEqual({ state: 'running' });
      await turn();
      return answer; // later than the bell
    });
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (job) => {
      if (!job.signal.aborted) await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      await job.end('cancelled', 'stopped');
    });
    created.mockRestore();
    const follower = await follow(b, id);
    await eventually(() => follower.ended === 'cancelled', 2_000);
    expect(await b.store.inbox(a.name)).toEqual([]);
  });

  // It was told to stop when it looked for an answer, and not by the bell; only the bell had started the clock.
  it('ends a cancelled job that does not listen, however it has heard', async () => {
    const a = await place.replica({ kinds: [kind], times: { cancelMs: 30 } });
    const asked = jest.spyOn(a.store, 'inbox').mockResolvedValue([]);
    let deaf: Job | undefined;
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (job) => {
      deaf = job;
      job.ask('q', 'may I?').catch(() => {});
      await new Promise(() => {});
    });
    const follower = await follow(a, id);
    await eventually(() => follower.last === 1);
    await a.store.cancel(id, 'ann', 'enough');
    await a.store.approve(id, 'ann', 'q', { approved: true });
    await deaf?.decide('q', { approved: false });
    await eventually(() => follower.ended === 'cancelled', 2_000);
    asked.mockRestore();
  });

  // Another replica held the younger half of a finished stream when the store forgot it. Who came for the older half
  // waited for it, with heartbeats, for ever.
  it('tells who wants the beginning of a finished stream of which only the rest is left', async () => {
    const small = testKind({ name: 'small', maxEvents: 10, keepMs: 1_000, logMs: 1_000 });
    const a = await place.replica({ kinds: [small] });
    const b = await place.replica({ kinds: [small] });
    const { id } = await a.jobs.start({ kind: small, principal: 'ann' }, async (job) => {
      for (;;) await job.emit('more');
    });
    const first = await follow(b, id);
    await eventually(() => first.ended !== undefined);
    now += 2_000;
    const late = await follow(b, id);
    await eventually(() => late.ended !== undefined, 2_000);
    expect(late.resets).toHaveLength(1);
    expect(late.seen.at(-1)).toContain('too_large');
  });

  // A replica that had come to the end of a stream by its number knew how it ended, and had no event that says so. When the
  // store had forgotten the job, it closed the streams of those who wanted more without one.
  it('has the terminal event of a stream that it follows from the end on', async () => {
    const brief = testKind({ name: 'brief', keepMs: 1_000, logMs: 1_000 });
    const a = await place.replica({ kinds: [brief] });
    const b = await place.replica({ kinds: [brief] });
    const { id } = await a.jobs.start({ kind: brief, principal: 'ann' }, async (job) => {
      await job.emit('one');
      await job.end('completed', 'end');
    });
    await eventually(async () => (await a.jobs.find(id))?.state === 'completed');
    const atEnd = await follow(b, id, 2);
    expect(atEnd).toMatchObject({ seen: [], ended: 'completed' });
    now += 2_000;
    const late = await follow(b, id);
    await eventually(() => late.ended !== undefined, 2_000);
    expect(late).toMatchObject({ seen: ['end'], resets: ['collapsed 2 '], ended: 'completed' });
  });

  // A replica stood still for so long that another one ended its jobs. One that was waiting for an answer had nothing to
  // write and so never heard of it: its work waited for ever, and so did the clients on its own replica.
  it('hears that it was taken for dead, even with nothing to write', async () => {
    const times = { renewMs: 20, holdOffMs: 100, lookMs: 60_000 };
    const a = await place.replica({ kinds: [kind], times });
    const b = await place.replica({ kinds: [kind], times });
    let asked: Promise<unknown> | undefined;
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (job) => {
      asked = job.ask('q', 'may I?');
      await asked;
    });
    const here = await follow(a, id);
    await eventually(() => here.last === 1);
    const record = await b.jobs.find(id);
    if (!record) throw new Error('no record');
    const end = { state: 'interrupted', keepMs: 60_000, logMs: 60_000, snapshot: undefined } as const;
    await place.expire(a);
    await b.store.reap(record, { events: [{ seq: 2, data: 'gone', end: end.state }], asks: [], end });
    await expect(asked).rejects.toThrow('Another replica has ended the job.');
    await eventually(() => here.ended !== undefined, 2_000);
    expect(here).toMatchObject({ seen: ['may I?', 'gone'], ended: 'interrupted', resets: [] });
  });

  // The note that it had to be done was taken away after it was done, with the second one that had come meanwhile.
  it('restores a job once more when the store loses it while it is being restored', async () => {
    const store = new MemoryJobStore();
    const facts = { id: 'twice', kind: kind.name, principal: 'ann', owner: 'a', about: '', created: 0 };
    const track = new Track({ store, id: facts.id, kindOf: () => kind, holdOffMs: 1 });
    const record = { ...facts, state: 'running', last: 0, from: 1, snapshot: undefined, cancel: undefined } as const;
    track.begin({ record: { ...record, approvals: new Map() }, events: [] });
    const restored: WholeJob[] = [];
    let answer: () => void = () => {};
    jest.spyOn(store, 'restore').mockImplementation(async (whole) => {
      restored.push(whole);
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return 'stored';
    });
    const writer = new JobWriter({ store, kind, facts, track, observe: new Counting(), begunAt: 0, cancelMs: 1 });
    writer.restore();
    writer.restore();
    answer();
    await eventually(() => restored.length === 2, 2_000);
    answer();
    writer.close();
    expect(writer.signal.reason).toBeInstanceOf(JobOver);
  });

  // A replica compared every mark with the one before. Jobs that it had begun before the first one were not brought back.
  it('counts everything before the first mark as possibly lost', () => {
    let listener: TopicListener | undefined;
    const part = { attachTopics: (attached: TopicListener) => (listener = attached) } as unknown as RedisPartition;
    const topics = new JobTopics(part);
    let lost = 0;
    topics.listen({ rang: () => {}, lost: () => lost++ });
    for (const epoch of [1, 1, 2, 2]) listener?.marked({ epoch, head: { ms: 0, seq: 0 }, time: 0 });
    expect(lost).toBe(2);
  });
});

// An announcement that does not arrive shows in the next number, and what lies between is read.
it('reads what was announced to others and not to it', async () => {
  class Forgetful extends MemoryJobStore {
    override watch(id: string, watcher: Watcher): () => void {
      const arrived = (event: JobEvent): void => {
        if (event.seq !== 2) watcher.arrived(event);
      };
      return super.watch(id, { level: () => watcher.level(), arrived });
    }
  }
  const store = new Forgetful();
  const kind = testKind({ name: 'gappy' });
  const [owner, other] = ['owner', 'other'].map((replica) => {
    const jobs = new Jobs({ store, replica, observe: new Counting() });
    jobs.declare(kind);
    return jobs;
  }) as [Jobs, Jobs];
  let job: Job | undefined;
  const { id } = await owner.start({ kind, principal: 'ann' }, async (running) => {
    job = running;
    await new Promise<void>((resolve) => {
      running.signal.addEventListener('abort', () => resolve());
    });
  });
  const reader = await other.attach(id, { after: 0 });
  if (!reader) throw new Error('no job');
  const follower = new Follower(reader);
  for (const data of ['one', 'two', 'three']) {
    await job?.emit(data);
    await eventually(async () => (await store.read(id, 0))?.events.at(-1)?.data === data);
  }
  await eventually(() => follower.last === 3);
  expect(follower.seen).toEqual(['one', 'two', 'three']);
  await Promise.all([owner.close(), other.close()]);
});
