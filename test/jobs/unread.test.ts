import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '../../src/jobs/writer.ts';
import { eventually } from '../streams/logs.ts';
import { follow, memoryPlace, type Place, redisPlace, testKind } from './replicas.ts';

const places: Place[] = [memoryPlace(), redisPlace()];

describe.each(places)('what nobody reads, on $name', (place) => {
  beforeAll(() => place.start());
  afterAll(() => place.stop());
  beforeEach(() => place.clear());

  it('is not taken from those who still read it, nor from the job that writes it', async () => {
    const kind = testKind();
    const owner = await place.replica({ kinds: [kind], times: { lingerMs: 1 } });
    const other = await place.replica({ kinds: [kind], times: { lingerMs: 1 } });
    let job: Job | undefined;
    const { id } = await owner.jobs.start({ kind, principal: 'ann' }, (running) => {
      job = running;
      return new Promise((resolve) => running.signal.addEventListener('abort', () => resolve()));
    });
    const readers = await Promise.all([owner, other].flatMap((one) => [follow(one, id), follow(one, id)]));
    await job?.emit('one');
    await eventually(() => readers.every(({ seen }) => seen.length === 1));
    for (const reader of [readers[0], readers[2]]) reader?.close();
    await sleep(20); // longer than anything lingers
    await job?.emit('two');
    await eventually(() => [readers[1], readers[3]].every((reader) => reader?.seen.length === 2));
    readers[1]?.close(); // nobody reads it where it runs
    await sleep(20);
    await job?.end('completed', 'three');
    await eventually(() => readers[3]?.ended !== undefined);
    expect(readers[3]?.seen).toEqual(['one', 'two', 'three']);
    const late = await follow(owner, id);
    await eventually(() => late.ended !== undefined);
    expect(late.seen).toEqual(['one', 'two', 'three']);
  });

  it('is not shown for longer than its kind is kept, though a replica still has it', async () => {
    const brief = testKind({ keepMs: 50, logMs: 50 });
    const replica = await place.replica({ kinds: [brief], times: { lingerMs: 3_600_000 } });
    const { id } = await replica.jobs.start({ kind: brief, principal: 'ann' }, (job) => job.end('completed', 'end'));
    const whole = await follow(replica, id);
    await eventually(() => whole.ended !== undefined);
    whole.close();
    await eventually(async () => {
      const reader = await replica.jobs.attach(id, { after: 0 });
      reader?.close();
      return reader === undefined;
    });
  });
});
