import { LateWrites } from '../../src/environments/late-writes.ts';
import { LogError } from '../../src/streams/log.ts';
import { settle } from './stage.ts';

describe('what others must come to know', () => {
  let writes: LateWrites;
  let attempts: number;
  let away: boolean;
  const write = async (): Promise<void> => {
    attempts++;
    if (away) throw new LogError('unavailable', 'away');
  };
  const turn = async (ms: number): Promise<void> => {
    jest.advanceTimersByTime(ms);
    await settle();
  };
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    writes = new LateWrites();
    attempts = 0;
    away = true;
  });
  afterEach(() => {
    writes.close();
    jest.useRealTimers();
  });

  it('is written when the store is back, once', async () => {
    await writes.write(write);
    expect(attempts).toBe(1);
    await turn(100);
    expect(attempts).toBe(2);
    away = false;
    await turn(200);
    expect(attempts).toBe(3);
    await turn(60_000);
    expect(attempts).toBe(3);
  });

  it('is not written any more when the gateway has stopped', async () => {
    await writes.write(write);
    writes.close();
    await turn(60_000);
    expect(attempts).toBe(1);
  });

  it('is not kept if it is wrong itself', async () => {
    const wrong = async (): Promise<void> => {
      attempts++;
      throw new Error('wrong');
    };
    await expect(writes.write(wrong)).rejects.toThrow('wrong');
    await turn(60_000);
    expect(attempts).toBe(1);
  });
});
