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
