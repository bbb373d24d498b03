import { setTimeout as sleep } from 'node:timers/promises';
import { Connections, type ConnectionsOptions, type ConnectionVerdict } from '../../src/limits/connections.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';
import { ReplicaLink } from '../support/replica-link.ts';

const allowed = (verdict: ConnectionVerdict): boolean => verdict.allowed;
const release = (verdict: ConnectionVerdict): void => {
  if (!verdict.allowed) throw new Error('There is nothing to release.');
  verdict.release();
};

describe('alone', () => {
  it('holds the limit of a principal', async () => {
    const connections = new Connections({ total: 0, perPrincipal: 2 });
    const first = await connections.acquire('a');
    expect(allowed(await connections.acquire('a'))).toBe(true);
    expect(await connections.acquire('a')).toEqual({ allowed: false, reason: 'principal' });
    expect(allowed(await connections.acquire('b'))).toBe(true);
    release(first);
    release(first); // twice does no harm
    expect(allowed(await connections.acquire('a'))).toBe(true);
    expect(allowed(await connections.acquire('a'))).toBe(false);
    expect(connections.size).toBe(3);
  });

  it('holds the limit of the replica', async () => {
    const connections = new Connections({ total: 2, perPrincipal: 0 });
    const first = await connections.acquire('a');
    await connections.acquire('b');
    expect(await connections.acquire('c')).toEqual({ allowed: false, reason: 'total' });
    release(first);
    expect(allowed(await connections.acquire('c'))).toBe(true);
  });

  it('is off at 0', async () => {
    const connections = new Connections({ total: 0, perPrincipal: 0 });
    const verdicts = await Promise.all(Array.from({ length: 1_000 }, () => connections.acquire('a')));
    expect(verdicts.every(allowed)).toBe(true);
  });
});

describe('over Redis', () => {
  let redis: RunningRedis;
  const started: { link: ReplicaLink; connections: Connections }[] = [];

  const replica = async (options: Partial<ConnectionsOptions> = {}) => {
    const link = await new ReplicaLink(redis.port).connect();
    const connections = new Connections({
      total: 0,
      perPrincipal: 3,
      redis: link.current,
      renewEveryMs: 0,
      ...options,
    });
    started.push({ link, connections });
    return { link, connections };
  };
  const some = (connections: Connections, principal: string, n: number) =>
    Promise.all(Array.from({ length: n }, () => connections.acquire(principal)));
  /** What is told in the background has arrived when this connection answers. */
  const settled = async (link: ReplicaLink): Promise<void> => void (await link.current()?.ping());

  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    for (const { link, connections } of started.splice(0)) {
      await connections.close();
      link.cut();
    }
    await redis.stop();
  });

  it('holds the limit of a principal over all replicas', async () => {
    const [one, two] = [await replica(), await replica()];
    const [first] = await some(one.connections, 'a', 2);
    expect((await some(two.connections, 'a', 2)).map(allowed)).toEqual([true, false]);
    expect(await two.connections.acquire('a')).toEqual({ allowed: false, reason: 'principal' });
    expect(allowed(await two.connections.acquire('b'))).toBe(true);
    release(first as ConnectionVerdict);
    await settled(one.link);
    expect(allowed(await two.connections.acquire('a'))).toBe(true);
  });

  it('gives exactly the free places to many who come at once', async () => {
    const [one, two] = [await replica({ perPrincipal: 10 }), await replica({ perPrincipal: 10 })];
    const both = await Promise.all([some(one.connections, 'a', 30), some(two.connections, 'a', 30)]);
    const won = both.flat().filter(allowed);
    expect(won).toHaveLength(10);
    expect(one.connections.size + two.connections.size).toBe(10);
    for (const verdict of won) release(verdict);
    await settled(one.link);
    await settled(two.link);
    expect((await some(one.connections, 'a', 10)).every(allowed)).toBe(true);
    expect(allowed(await two.connections.acquire('a'))).toBe(false);
  });

  it('leaves nothing in Redis when all have gone', async () => {
    const { link, connections } = await replica();
    for (const verdict of await some(connections, 'a', 3)) release(verdict);
    await settled(link);
    expect(await link.current()?.keys('*')).toEqual(['sluice:connections:leases']);
    await connections.close();
    expect(await link.current()?.keys('*')).toEqual([]);
    expect(Reflect.get(connections, 'held')).toEqual(new Map());
  });

  it('forgets a dead replica with its lease, and not before', async () => {
    const dead = await replica({ replica: 'dead' });
    const alive = await replica();
    await some(dead.connections, 'a', 3);
    dead.link.cut();
    expect(allowed(await alive.connections.acquire('a'))).toBe(false);
    const ends = Number(await alive.link.current()?.zscore('sluice:connections:leases', 'dead'));
    expect(ends - Date.now()).toBeGreaterThan(10_000);
    expect(ends - Date.now()).toBeLessThanOrEqual(12_000);
    await alive.link.current()?.zadd('sluice:connections:leases', Date.now() - 1, 'dead'); // as if the time had passed
    expect((await some(alive.connections, 'a', 4)).map(allowed)).toEqual([true, true, true, false]);
  });

  it('keeps the lease of a living replica by itself', async () => {
    const one = await replica({ leaseMs: 400, renewEveryMs: 50 });
    const two = await replica();
    await some(one.connections, 'a', 3);
    await sleep(1_000); // the lease is by the clock of Redis
    expect(allowed(await two.connections.acquire('a'))).toBe(false);
    one.link.cut();
    await sleep(450);
    expect(allowed(await two.connections.acquire('a'))).toBe(true);
  });

  it('tells everything again when its lease was lost meanwhile', async () => {
    const [one, two] = [await replica({ replica: 'one' }), await replica()];
    await some(one.connections, 'a', 3);
    await two.link.current()?.zrem('sluice:connections:leases', 'one');
    expect(allowed(await two.connections.acquire('b'))).toBe(true);
    const intruder = await two.connections.acquire('a'); // two has thrown the counts of one away
    expect(allowed(intruder)).toBe(true);
    release(intruder);
    await one.connections.renew();
    expect(allowed(await two.connections.acquire('a'))).toBe(false);
  });

  it('tells everything again on a new connection, behind which may be a server that missed it', async () => {
    const [one, two] = [await replica(), await replica()];
    await some(one.connections, 'a', 3);
    const keys = (await one.link.current()?.keys('sluice:connections:*')) ?? [];
    await one.link.current()?.del(...keys.filter((key) => !key.endsWith(':leases'))); // as a failover may
    await one.link.connect();
    await one.connections.renew();
    expect(allowed(await two.connections.acquire('a'))).toBe(false);
  });

  it('counts locally while the connection is lost, and tells what has changed afterwards', async () => {
    const [one, two] = [await replica(), await replica()];
    const [first, second] = await some(one.connections, 'a', 2);
    const gone = await one.connections.acquire('b');
    one.link.cut();
    release(first as ConnectionVerdict);
    release(second as ConnectionVerdict);
    release(gone);
    expect((await some(one.connections, 'b', 4)).map(allowed)).toEqual([true, true, true, false]);
    expect((await some(two.connections, 'a', 2)).map(allowed)).toEqual([true, false]); // the lease holds
    await one.link.connect();
    await one.connections.renew();
    expect((await some(two.connections, 'a', 3)).map(allowed)).toEqual([true, true, false]);
    expect(allowed(await two.connections.acquire('b'))).toBe(false);
  });

  it('starts with a Redis that is away', async () => {
    const { link, connections } = await replica();
    link.cut();
    expect((await some(connections, 'a', 4)).map(allowed)).toEqual([true, true, true, false]);
    await link.connect();
    await connections.renew();
    const other = await replica();
    expect(allowed(await other.connections.acquire('a'))).toBe(false);
  });

  it('goes on with an empty Redis after the old one was killed', async () => {
    const [one, two] = [await replica(), await replica()];
    await some(one.connections, 'a', 2);
    await one.link.current()?.flushall(); // what a restart without persistence leaves
    await one.link.connect();
    await one.connections.renew();
    expect((await some(two.connections, 'a', 2)).map(allowed)).toEqual([true, false]);
    await redis.stop();
    expect((await some(one.connections, 'a', 2)).map(allowed)).toEqual([true, false]);
    expect((await some(two.connections, 'c', 4)).map(allowed)).toEqual([true, true, true, false]);
  });

  it('keeps nobody waiting for a Redis that hangs, and is right again when it goes on', async () => {
    const clock = { now: 0 };
    const one = await replica({ now: () => clock.now });
    const two = await replica();
    const first = await one.connections.acquire('a');
    redis.child.kill('SIGSTOP');
    let began = performance.now();
    const verdicts = await some(one.connections, 'a', 3);
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(verdicts.map(allowed)).toEqual([true, true, false]);
    began = performance.now();
    release(first);
    expect(allowed(await one.connections.acquire('b'))).toBe(true);
    expect(performance.now() - began).toBeLessThan(200); // one has waited, the next need not
    redis.child.kill('SIGCONT');
    clock.now += 1_001;
    await one.connections.renew();
    // a: 2 of 3 there, b: 1 of 3, whatever the late commands have written
    expect((await some(two.connections, 'a', 2)).map(allowed)).toEqual([true, false]);
    expect((await some(two.connections, 'b', 3)).map(allowed)).toEqual([true, true, false]);
  });

  it('does not believe that what it gave up did not happen', async () => {
    const clock = { now: 0 };
    const one = await replica({ now: () => clock.now });
    const two = await replica();
    const first = await one.connections.acquire('a');
    redis.child.kill('SIGSTOP');
    const second = one.connections.acquire('a'); // Redis will write a total of 2 when it goes on
    release(first);
    expect(allowed(await second)).toBe(true);
    redis.child.kill('SIGCONT');
    await settled(one.link);
    clock.now += 1_001;
    await one.connections.renew();
    expect((await some(two.connections, 'a', 2)).map(allowed)).toEqual([true, true]);
  });

  it('puts a total right that was asked for together with one that was refused', async () => {
    const [one, two] = [await replica({ perPrincipal: 2 }), await replica({ perPrincipal: 2 })];
    const held = await one.connections.acquire('a');
    const other = await two.connections.acquire('a');
    const late = one.connections.acquire('a'); // on its way while the first one ends
    release(held);
    expect(allowed(await late)).toBe(false);
    await settled(one.link);
    release(other);
    await settled(two.link);
    expect((await some(two.connections, 'a', 2)).map(allowed)).toEqual([true, true]);
  });

  it('tells a long connection again before its counts are thrown away', async () => {
    const clock = { now: 0 };
    const { link, connections } = await replica({ now: () => clock.now });
    await connections.acquire('a');
    const keys = (await link.current()?.keys('*')) ?? [];
    const counts = keys.find((key) => !key.endsWith(':leases')) as string;
    await link.current()?.pexpire(counts, 5_000);
    await connections.renew();
    expect(await link.current()?.pttl(counts)).toBeLessThanOrEqual(5_000);
    clock.now += 1_200_001;
    await connections.renew();
    expect(await link.current()?.pttl(counts)).toBeGreaterThan(3_500_000);
  });
});
