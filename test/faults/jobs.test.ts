import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../streams/logs.ts';
import { Fleet, type Stored } from './fleet.ts';
import type { Followed } from './followed.ts';
import type { ReplicaProcess, Stats } from './replica-process.ts';

/** The promise of the product: whoever follows a job whose gateway dies sees its end within so long. */
const END_WITHIN_MS = 25_000;
/** They wait for leases and pauses most of the time, so all of them run at once. */
const PATIENCE_MS = 120_000;

const unharmed = { reaped: 0, fenced: 0, restored: 0, failures: [] } satisfies Partial<Stats>;

/** One event after another from the first on, each written by its owner, and one end, by `ender`. */
const expectWhole = ({ events, hash }: Stored, state: string, owner: ReplicaProcess, ender: number, cause: string) => {
  const end = events.length;
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  expect(events.filter((event) => event.end)).toEqual([{ seq: end, data: `${end} ${ender} ${cause}`, end: state }]);
  expect(hash).toMatchObject({ state, last: String(end) });
  // Who ends the job of another says something before the end; see `ended` of the kind.
  const own = cause === 'completed' ? end - 1 : end - 2;
  expect(events.slice(0, own).map(({ data }) => data)).toEqual(
    Array.from({ length: own }, (_, i) => `${i + 1} ${owner.pid}`),
  );
};

const expectSeen = (followed: Followed, { events }: Stored) => {
  const { after, resets, ends } = followed;
  expect({ resets, ends }).toEqual({ resets: [], ends: [events.at(-1)?.end] });
  expect(followed.events).toEqual(events.slice(after));
};

const allEnded = (followed: readonly Followed[], withinMs: number): Promise<void> =>
  eventually(() => followed.every(({ ended }) => ended), withinMs);

describe('jobs of real processes', () => {
  it.concurrent(
    'lets jobs finish while the gateway stops, ends the others itself, and leaves nothing behind',
    async () => {
      const graceMs = 4_000;
      const fleet = await Fleet.start(2, graceMs);
      const [stopping, other] = [fleet.replica(0), fleet.replica(1)];
      const quick = await stopping.start({ everyMs: 50, events: 30 });
      const slow = await stopping.start({ everyMs: 50, events: 100_000 });
      // Waits for its first event for so long that the process would not end before the test.
      const idle = await stopping.start({ everyMs: 10 * PATIENCE_MS, events: 1 });
      const followed = {
        quick: await other.follow(quick),
        slow: await other.follow(slow),
        idle: await other.follow(idle),
      };
      await eventually(() => followed.slow.last > 5);
      const told = performance.now();
      stopping.kill('SIGTERM');
      await eventually(() =>
        stopping.start({ everyMs: 50, events: 1 }).then(
          () => false,
          ({ code }) => code === 'stopping',
        ),
      );
      expect(await stopping.exited).toEqual({ code: 0, signal: null });
      expect(performance.now() - told).toBeGreaterThan(graceMs - 100);
      await allEnded(Object.values(followed), 5_000);
      const stored = {
        quick: await fleet.stored(quick),
        slow: await fleet.stored(slow),
        idle: await fleet.stored(idle),
      };
      expectWhole(stored.quick, 'completed', stopping, stopping.pid, 'completed');
      expectWhole(stored.slow, 'interrupted', stopping, stopping.pid, 'shutdown');
      expectWhole(stored.idle, 'interrupted', stopping, stopping.pid, 'shutdown');
      for (const name of ['quick', 'slow', 'idle'] as const) expectSeen(followed[name], stored[name]);
      expect(await fleet.admin.exists(fleet.keys.lease(stopping.name))).toBe(0);
      expect(await fleet.admin.smembers(fleet.keys.owners)).toEqual([]);
      expect(await other.stats()).toMatchObject(unharmed);
      await fleet.stop();
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'ends the jobs of a gateway that was killed, once, for everybody who follows them elsewhere',
    async () => {
      const fleet = await Fleet.start(3);
      const [owner, ...others] = [fleet.replica(0), fleet.replica(1), fleet.replica(2)];
      const ids = await Promise.all([2, 5, 20].map((everyMs) => owner.start({ everyMs, events: 100_000 })));
      const near = await Promise.all(ids.map((id) => owner.follow(id)));
      const far = await Promise.all(others.flatMap((other) => ids.map((id) => other.follow(id))));
      await eventually(() => [...near, ...far].every(({ last }) => last > 20));
      far.push(...(await Promise.all(ids.map((id) => fleet.replica(1).follow(id, 15)))));
      const killed = performance.now();
      owner.kill('SIGKILL');
      expect(await owner.exited).toMatchObject({ signal: 'SIGKILL' });
      far.push(...(await Promise.all(ids.map((id) => fleet.replica(2).follow(id)))));
      expect(far.some(({ ended }) => ended)).toBe(false);
      await allEnded(far, END_WITHIN_MS + 5_000);
      for (const { endedAt } of far) expect(endedAt).toBeLessThan(killed + END_WITHIN_MS);
      await sleep(3_000); // whoever else has looked at the dead meanwhile would have ended them again by now
      for (const [i, id] of ids.entries()) {
        const stored = await fleet.stored(id);
        const enders = others.filter(({ pid }) => stored.events.at(-1)?.data.includes(` ${pid} `));
        expect(enders).toHaveLength(1);
        expectWhole(stored, 'interrupted', owner, enders[0]?.pid ?? 0, 'owner_lost');
        for (const followed of far.filter((_, j) => j % ids.length === i)) expectSeen(followed, stored);
        // What the dead gateway had shown is a part of what everybody else has seen.
        const seen = near[i]?.events ?? [];
        expect(seen.length).toBeGreaterThan(20);
        expect(seen).toEqual(stored.events.slice(0, seen.length));
      }
      const stats = await Promise.all(others.map((other) => other.stats()));
      expect(stats.reduce((sum, { reaped }) => sum + reaped, 0)).toBe(ids.length);
      expect(stats.flatMap(({ failures }) => failures)).toEqual([]);
      expect(await fleet.admin.smembers(fleet.keys.owners)).toEqual([]);
      await fleet.stop();
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'ends hundreds of jobs of a gateway that was killed in time, each once',
    async () => {
      const fleet = await Fleet.start(3);
      const [owner, ...others] = [fleet.replica(0), fleet.replica(1), fleet.replica(2)];
      const ids = await Promise.all(Array.from({ length: 300 }, () => owner.start({ everyMs: 500, events: 100_000 })));
      const followed = await Promise.all(ids.map((id) => fleet.replica(1).follow(id)));
      await eventually(() => followed.every(({ last }) => last > 1));
      const killed = performance.now();
      owner.kill('SIGKILL');
      await allEnded(followed, END_WITHIN_MS + 5_000);
      for (const { endedAt } of followed) expect(endedAt).toBeLessThan(killed + END_WITHIN_MS);
      await sleep(3_000);
      for (const [i, id] of ids.entries()) {
        const stored = await fleet.stored(id);
        const ender = others.find(({ pid }) => stored.events.at(-1)?.data.includes(` ${pid} `));
        expectWhole(stored, 'interrupted', owner, ender?.pid ?? 0, 'owner_lost');
        expectSeen(followed[i] as Followed, stored);
      }
      const stats = await Promise.all(others.map((other) => other.stats()));
      expect(stats.reduce((sum, { reaped }) => sum + reaped, 0)).toBe(ids.length);
      expect(stats.flatMap(({ failures }) => failures)).toEqual([]);
      expect(await fleet.admin.smembers(fleet.keys.owners)).toEqual([]);
      await fleet.stop();
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'lets a gateway that was stopped for too long write nothing more when it comes back',
    async () => {
      const fleet = await Fleet.start(2);
      const [owner, other] = [fleet.replica(0), fleet.replica(1)];
      const id = await owner.start({ everyMs: 20, events: 100_000, stubborn: true });
      const far = await other.follow(id);
      const near = [await owner.follow(id)];
      await eventually(() => far.last > 50);
      near.push(await owner.follow(id, 40));
      owner.kill('SIGSTOP');
      await allEnded([far], END_WITHIN_MS + 5_000);
      const before = await fleet.stored(id);
      expectWhole(before, 'interrupted', owner, other.pid, 'owner_lost');
      owner.kill('SIGCONT');
      await sleep(4_000);
      const stats = await owner.stats();
      expect(stats).toMatchObject({ reaped: 0, fenced: 1, restored: 0, failures: [] });
      expect(stats.works[id]?.aborted).toBe('JobOver');
      expect(stats.works[id]?.refused).toBeGreaterThan(20);
      expect(await fleet.stored(id)).toEqual(before);
      for (const followed of [far, ...near]) expectSeen(followed, before);
      expect(await other.stats()).toMatchObject({ ...unharmed, reaped: 1 });
      // It has lost that job and nothing else.
      const next = await owner.start({ everyMs: 10, events: 50 });
      const followed = [await owner.follow(next), await other.follow(next)];
      await allEnded(followed, 10_000);
      const stored = await fleet.stored(next);
      expectWhole(stored, 'completed', owner, owner.pid, 'completed');
      for (const each of followed) expectSeen(each, stored);
      await fleet.stop();
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'ends nothing while Redis is paused, however long, nor after it',
    async () => {
      const fleet = await Fleet.start(2);
      const { replicas, redis } = fleet;
      // At least 45 s: they go on for longer than the reaper holds off after the pause.
      const ids = await Promise.all(replicas.map((replica) => replica.start({ everyMs: 50, events: 900 })));
      const followAll = (after?: number): Promise<Followed[]> =>
        Promise.all(replicas.flatMap((replica) => ids.map((id) => replica.follow(id, after))));
      const followed = await followAll();
      await eventually(() => followed.every(({ last }) => last > 15));
      followed.push(...(await followAll(10)));
      redis.child.kill('SIGSTOP');
      const paused = sleep(30_000);
      await sleep(5_000);
      const late = followAll(5); // attached while nobody answers
      await paused;
      const seen = followed.map(({ last }) => last);
      redis.child.kill('SIGCONT');
      followed.push(...(await late));
      await allEnded(followed, 40_000);
      expect(Math.max(...seen)).toBeLessThan(200); // nobody was shown what was not stored
      for (const [i, id] of ids.entries()) {
        const stored = await fleet.stored(id);
        const owner = fleet.replica(i);
        expect(stored.events).toHaveLength(901);
        expectWhole(stored, 'completed', owner, owner.pid, 'completed');
        for (const each of followed.filter((_, j) => j % ids.length === i)) expectSeen(each, stored);
      }
      for (const replica of replicas) expect(await replica.stats()).toMatchObject(unharmed);
      await fleet.stop();
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'leaves the jobs of a gateway alone that was stopped for longer than its lease, but not for too long',
    async () => {
      const fleet = await Fleet.start(2);
      const [owner, other] = [fleet.replica(0), fleet.replica(1)];
      const id = await owner.start({ everyMs: 50, events: 150 });
      const followed = [await owner.follow(id), await other.follow(id)];
      await eventually(() => followed.every(({ last }) => last > 10));
      owner.kill('SIGSTOP');
      await sleep(13_000);
      expect(await fleet.admin.exists(fleet.keys.lease(owner.name))).toBe(0);
      owner.kill('SIGCONT');
      await allEnded(followed, 30_000);
      const stored = await fleet.stored(id);
      expectWhole(stored, 'completed', owner, owner.pid, 'completed');
      for (const each of followed) expectSeen(each, stored);
      for (const replica of fleet.replicas) expect(await replica.stats()).toMatchObject(unharmed);
      await fleet.stop();
    },
    PATIENCE_MS,
  );
});
