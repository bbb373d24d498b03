import { Redis } from 'ioredis';
import { type FirstUse, MemoryFirstUse } from '../../src/auth/first-use.ts';
import { RedisFirstUse } from '../../src/auth/redis-first-use.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';
import { Clock, START } from './fixtures.ts';

describe('MemoryFirstUse', () => {
  it('knows a mark until its time', async () => {
    const clock = new Clock();
    const store = new MemoryFirstUse({ now: clock.now });
    await store.mark('a', START + 1_000);
    clock.advance(999);
    expect(await store.seen('a')).toBe(true);
    expect(await store.seen('b')).toBe(false);
    clock.advance(1);
    expect(await store.seen('a')).toBe(false);
  });

  it('forgets the oldest when it is full', async () => {
    const store = new MemoryFirstUse({ maxMarks: 3, now: new Clock().now });
    for (const id of ['a', 'b', 'c', 'd']) await store.mark(id, START + 1_000);
    expect(store.size).toBe(3);
    expect(await store.seen('a')).toBe(false);
    expect(await store.seen('b')).toBe(true);
    expect(await store.seen('d')).toBe(true);
  });

  it('keeps no marks whose time is over', async () => {
    const clock = new Clock();
    const store = new MemoryFirstUse({ now: clock.now });
    for (let i = 0; i < 100; i++) await store.mark(`old-${i}`, START + 1_000);
    clock.advance(1_000);
    await store.mark('new', START + 5_000);
    expect(store.size).toBe(1);
  });
});

describe('RedisFirstUse', () => {
  let server: RunningRedis;
  let redis: Redis;
  let store: FirstUse;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port, '127.0.0.1', { retryStrategy: () => null });
    redis.on('error', () => {});
    store = new RedisFirstUse({
      run: (command, ...args) => redis.call(command, ...args),
      keyPrefix: 'gate:',
      now: () => START,
    });
  });

  afterAll(() => {
    if (redis.status !== 'end') redis.disconnect(); // on a closed connection ioredis would start a timer of 2 s
  });

  it('shares marks that end by themselves', async () => {
    await store.mark('a', START + 60_000);
    expect(await store.seen('a')).toBe(true);
    expect(await store.seen('b')).toBe(false);
    const left = await redis.pttl('gate:ticket:a');
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  it('writes no mark whose time is over, which Redis would refuse', async () => {
    await expect(store.mark('late', START)).resolves.toBeUndefined();
    expect(await store.seen('late')).toBe(false);
  });

  it('says so when the server is away', async () => {
    await server.stop();
    await expect(store.mark('c', START + 1_000)).rejects.toThrow();
    await expect(store.seen('a')).rejects.toThrow();
  });
});
