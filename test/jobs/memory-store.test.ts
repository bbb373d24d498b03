import { MemoryJobStore } from '../../src/jobs/memory-store.ts';
import { eventually } from '../streams/logs.ts';
import { follow, listing, memoryPlace, testKind } from './replicas.ts';

describe('jobs in memory', () => {
  let now = 1_000_000;
  const place = memoryPlace(() => now);
  afterAll(() => place.stop());

  it('are kept after their end for as long as their kind says, and their stream for as long as it says', async () => {
    await place.clear();
    const brief = testKind({ keepMs: 30_000, logMs: 10_000, snapshot: listing });
    const replica = await place.replica({ kinds: [brief], times: { lingerMs: 0 } });
    const { id } = await replica.jobs.start({ kind: brief, principal: 'ann' }, async (job) => {
      await job.emit('one');
      await job.emit('two');
      await job.end('completed', 'end');
    });
    const whole = await follow(replica, id);
    await eventually(() => whole.ended !== undefined);
    expect(whole.seen).toEqual(['one', 'two', 'end']);
    whole.close();
    now += 10_000;
    await eventually(async () => {
      const late = await follow(replica, id);
      late.close();
      return late.resets[0] === 'collapsed 3 one|two' && late.seen.join() === 'end';
    });
    now += 19_999;
    expect(await replica.jobs.find(id)).toMatchObject({ state: 'completed', last: 3 });
    now += 1;
    expect(await replica.jobs.find(id)).toBeUndefined();
    await eventually(async () => {
      const reader = await replica.jobs.attach(id, { after: 0 });
      reader?.close();
      return reader === undefined;
    });
  });

  it('hold no more than they may when they are over: the oldest go first', async () => {
    const store = new MemoryJobStore({ maxFinishedBytes: 10_000 });
    const end = { state: 'completed', keepMs: 60_000, logMs: 60_000, snapshot: undefined } as const;
    const ids = Array.from({ length: 8 }, (_, i) => `job ${i}`);
    for (const id of ids) {
      const job = { id, owner: 'me', kind: 'test', principal: 'ann', about: '', created: 0 };
      await store.create({ ...job, events: [] });
      const events = [{ seq: 1, data: 'x'.repeat(1_000), end: 'completed' }] as const;
      await store.append(job, { events, asks: [], end });
    }
    const kept = await Promise.all(ids.map((id) => store.read(id, 0)));
    expect(kept.map((page) => page !== undefined)).toEqual([false, false, false, false, true, true, true, true]);
  });

  it('are not held beside the store once they are over and nobody reads them', async () => {
    await place.clear();
    const kind = testKind({ keepMs: 30_000 });
    const replica = await place.replica({ kinds: [kind], times: { lingerMs: 3_600_000 } });
    const { id } = await replica.jobs.start({ kind, principal: 'ann' }, (job) => job.end('completed', 'end'));
    const whole = await follow(replica, id);
    await eventually(() => whole.ended !== undefined);
    whole.close();
    const again = await follow(replica, id);
    await eventually(() => again.ended !== undefined);
    expect(again.seen).toEqual(['end']);
    again.close();
    now += 30_000;
    expect(await replica.jobs.attach(id, { after: 0 })).toBeUndefined();
  });

  it('leave in their order, whatever others of their time are kept for', async () => {
    let time = 0;
    const store = new MemoryJobStore({ now: () => time, maxFinishedBytes: 3_500 });
    const finish = async (id: string, keepMs: number): Promise<void> => {
      const job = { id, owner: 'me', kind: 'test', principal: 'ann', about: '', created: 0 };
      await store.create({ ...job, events: [] });
      const end = { state: 'completed', keepMs, logMs: keepMs, snapshot: undefined } as const;
      await store.append(job, { events: [{ seq: 1, data: 'x', end: 'completed' }], asks: [], end });
    };
    const kept = async (): Promise<boolean[]> =>
      Promise.all(['long', 'short', 'later'].map(async (id) => (await store.read(id, 0)) !== undefined));
    await finish('long', 100_000);
    await finish('short', 1_000);
    time = 500;
    await finish('later', 1_000);
    time = 1_000;
    expect(await kept()).toEqual([true, false, true]);
    time = 70_000; // everything that is over has been thrown away by now
    expect(await kept()).toEqual([true, false, false]);
    await finish('newest', 100_000); // and leaves its room to others
    expect(await kept()).toEqual([true, false, false]);
    time = 100_000;
    expect(await kept()).toEqual([false, false, false]);
  });

  it('forget idempotency keys after a day', async () => {
    await place.clear();
    const kind = testKind();
    const replica = await place.replica({ kinds: [kind] });
    const wanted = { kind, principal: 'ann', idempotency: { key: 'k', fingerprint: 'f' } };
    const work = (): Promise<void> => Promise.resolve();
    expect((await replica.jobs.start(wanted, work)).created).toBe(true);
    now += 24 * 60 * 60 * 1_000 - 1;
    expect((await replica.jobs.start(wanted, work)).created).toBe(false);
    now += 1;
    expect((await replica.jobs.start(wanted, work)).created).toBe(true);
  });
});
