import type { Job } from '../../src/jobs/writer.ts';
import { RawStream } from '../support/raw-stream.ts';
import { memoryPlace, testKind } from './replicas.ts';
import { Site } from './site.ts';

/** What a frame of the test has besides its data, chunk and all. */
const AROUND = 30;

const turns = async (): Promise<void> => {
  for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('a stream frame by frame', () => {
  const place = memoryPlace();
  const kind = testKind();
  afterAll(() => place.stop());

  it('leaves no faster than a client reads: a burst of 16 KiB, then 4 KiB a millisecond, and no more after a pause', async () => {
    await place.clear();
    const replica = await place.replica({ kinds: [kind] });
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'], now: 1_000_000 });
    try {
      const site = await new Site(replica, { frameByFrame: true }).listen();
      let written = 0;
      site.wrote = () => written++;
      let job: Job | undefined;
      const { id } = await replica.jobs.start({ kind, principal: 'ann' }, (running) => {
        job = running;
        return new Promise((resolve) => running.signal.addEventListener('abort', () => resolve()));
      });
      const emit = async (times: number): Promise<void> => {
        for (let i = 0; i < times; i++) await job?.emit('x'.repeat(1_024 - AROUND));
      };
      await jest.advanceTimersByTimeAsync(1_000);
      await emit(60);
      const stream = new RawStream(site.port, `/${id}`);
      /** How many frames leave until the clock has to go on. */
      const left = async (ms = 0): Promise<number> => {
        const before = written;
        await jest.advanceTimersByTimeAsync(ms);
        await turns();
        return written - before;
      };
      const burst = await left();
      expect(burst).toBeGreaterThanOrEqual(16);
      expect(burst).toBeLessThanOrEqual(17);
      for (let i = 0; i < 3; i++) {
        const more = await left(1);
        expect(more).toBeGreaterThanOrEqual(3);
        expect(more).toBeLessThanOrEqual(5);
      }
      for (let i = 0; i < 20; i++) await left(1);
      expect(written).toBe(60);
      await left(100);
      await emit(30);
      const after = await left();
      expect(after).toBeGreaterThanOrEqual(3);
      expect(after).toBeLessThanOrEqual(9); // less than a burst
      for (let i = 0; i < 20; i++) await left(1);
      expect(written).toBe(90);
      await job?.end('completed', 'end');
      await turns();
      await left(1);
      expect(site.reasons).toEqual(['finished']);
      stream.close();
      await site.stop();
    } finally {
      jest.useRealTimers();
    }
  });
});
