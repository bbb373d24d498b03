import { PublishRate } from '../../src/limits/publish-rate.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';
import { ReplicaLink } from '../support/replica-link.ts';

describe('alone', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('allows as many events a second as it says, and says when to come back', async () => {
    const rate = new PublishRate({ perSecond: 3 });
    expect(await rate.take('a', 2)).toEqual({ allowed: true });
    expect(await rate.take('a', 1)).toEqual({ allowed: true });
    expect(await rate.take('a', 1)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    expect(await rate.take('b', 3)).toEqual({ allowed: true });
    jest.advanceTimersByTime(1_000);
    expect(await rate.take('a', 3)).toEqual({ allowed: true });
  });

  it('counts the events of a batch', async () => {
    const rate = new PublishRate({ perSecond: 10 });
    expect(await rate.take('a', 6)).toEqual({ allowed: true });
    expect(await rate.take('a', 6)).toMatchObject({ allowed: false });
  });

  it('lets a batch that is larger than the limit through an empty window, which is then as long as the batch is worth', async () => {
    const rate = new PublishRate({ perSecond: 10 });
    expect(await rate.take('a', 25)).toEqual({ allowed: true });
    expect(await rate.take('a', 1)).toEqual({ allowed: false, retryAfterSeconds: 3 });
    jest.advanceTimersByTime(2_900);
    expect(await rate.take('a', 1)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    jest.advanceTimersByTime(100);
    expect(await rate.take('a', 1)).toEqual({ allowed: true });
    expect(await rate.take('a', 25)).toEqual({ allowed: false, retryAfterSeconds: 1 });
  });

  it('is off at 0', async () => {
    const rate = new PublishRate({ perSecond: 0 });
    for (let i = 0; i < 3; i++) expect(await rate.take('a', 1_000_000)).toEqual({ allowed: true });
  });
});

describe('over Redis', () => {
  let redis: RunningRedis;
  const links: ReplicaLink[] = [];
  const replica = async (perSecond: number) => {
    const link = await new ReplicaLink(redis.port).connect();
    links.push(link);
    const failures: unknown[] = [];
    const failed = (error: unknown): void => void failures.push(error);
    return { link, failures, rate: new PublishRate({ perSecond, redis: link.current, failed }) };
  };
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(() => {
    for (const link of links.splice(0)) link.cut();
  });

  it('counts over all replicas', async () => {
    const [one, two] = [await replica(10), await replica(10)];
    expect(await one.rate.take('shared', 6)).toEqual({ allowed: true });
    expect(await two.rate.take('shared', 5)).toEqual({ allowed: false, retryAfterSeconds: 1 });
    expect(await two.rate.take('other', 5)).toEqual({ allowed: true });
  });

  it('gives a large batch its longer window on all replicas', async () => {
    const [one, two] = [await replica(10), await replica(10)];
    expect(await one.rate.take('large', 1_000)).toEqual({ allowed: true });
    const verdict = await two.rate.take('large', 1_000);
    expect(verdict).toEqual({ allowed: false, retryAfterSeconds: 100 });
  });

  it('lets nobody read who publishes', async () => {
    const { rate, link } = await replica(10);
    await rate.take('somebody@example.com', 1);
    const keys = (await link.current()?.keys('*')) ?? [];
    expect(keys.length).toBeGreaterThan(0);
    expect(keys.every((key) => key.startsWith('sluice:publish:') && !key.includes('somebody'))).toBe(true);
  });

  it('counts locally while the connection is lost, and together again with the next one', async () => {
    const [one, two] = [await replica(10), await replica(10)];
    one.link.cut();
    expect(await one.rate.take('cut', 10)).toEqual({ allowed: true });
    expect(await one.rate.take('cut', 1)).toMatchObject({ allowed: false });
    expect(await two.rate.take('cut', 1_000)).toEqual({ allowed: true }); // 100 s long
    await one.link.connect();
    expect(await one.rate.take('cut', 1)).toMatchObject({ allowed: false, retryAfterSeconds: 100 });
  });

  it('keeps nobody waiting for a Redis that hangs', async () => {
    const { rate, failures } = await replica(10);
    redis.child.kill('SIGSTOP');
    try {
      const began = performance.now();
      expect(await rate.take('hang', 9)).toEqual({ allowed: true });
      expect(performance.now() - began).toBeLessThan(1_000);
      const second = performance.now();
      expect(await rate.take('hang', 2)).toMatchObject({ allowed: false });
      expect(performance.now() - second).toBeLessThan(200); // one has waited, the next need not
      expect(failures).toHaveLength(1);
    } finally {
      redis.child.kill('SIGCONT');
    }
  });
});
