import { Redis } from 'ioredis';
import { AgentRate } from '../../src/limits/agent-rate.ts';
import { Board } from '../../src/limits/board.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

describe('the board of all replicas', () => {
  let server: RunningRedis;
  let redis: Redis;
  let now = 1_000_000;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port, '127.0.0.1');
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  const board = (replica: string, shared = true): Board<number> =>
    new Board({ name: 'test', replica, freshMs: 1_000, now: () => now, ...(shared && { redis: () => redis }) });

  it('shows what all have written, until they have not written for a while', async () => {
    const a = board('a');
    const b = board('b');
    expect(await a.exchange(1)).toEqual([1]);
    expect(await b.exchange(2)).toEqual([2, 1]);
    expect(await a.exchange(3)).toEqual([3, 2]);
    now += 1_000;
    expect(await a.exchange(4)).toEqual([4]);
    await b.exchange(5);
    await b.leave();
    expect(await a.exchange(6)).toEqual([6]);
  });

  it('lets one replica speak for all, and another one when that is silent', async () => {
    const a = board('a');
    const b = board('b');
    expect(await a.speaks('topic', 60_000)).toBe(true);
    expect(await b.speaks('topic', 60_000)).toBe(false);
    expect(await a.speaks('topic', 60_000)).toBe(true);
    expect(await b.speaks('other', 60_000)).toBe(true);
    await redis.del('sluice:board:test:topic');
    expect(await b.speaks('topic', 60_000)).toBe(true);
  });

  it('knows only of itself without a shared store, and while that is away', async () => {
    const alone = board('a', false);
    expect(await alone.exchange(1)).toEqual([1]);
    expect(await alone.speaks('topic', 1_000)).toBe(true);
    const cut = new Board<number>({ name: 'test', replica: 'c', freshMs: 1_000, redis: () => undefined });
    expect(await cut.exchange(7)).toEqual([7]);
    expect(await cut.speaks('topic', 1_000)).toBe(false); // two might speak at once otherwise
  });
});

describe.each(['memory', 'redis'])('requests of an agent, counted in %s', (store) => {
  let server: RunningRedis | undefined;
  let redis: Redis | undefined;
  beforeAll(async () => {
    if (store === 'memory') return;
    server = await startRedis();
    redis = new Redis(server.port, '127.0.0.1');
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });

  it('are refused beyond what a minute and a second allow', async () => {
    const one = new AgentRate(redis ? { redis: () => redis } : {});
    const two = redis ? new AgentRate({ redis: () => redis }) : one;
    expect(await one.take('a', 3, undefined)).toEqual({ allowed: true });
    expect(await two.take('a', 3, undefined)).toEqual({ allowed: true });
    expect(await one.take('a', 3, undefined)).toEqual({ allowed: true });
    expect(await two.take('a', 3, undefined)).toEqual({ allowed: false, retryAfterSeconds: 60 });
    expect(await two.take('b', 3, 1)).toEqual({ allowed: true });
    expect(await two.take('b', 3, 1)).toEqual({ allowed: false, retryAfterSeconds: 1 });
  });
});
