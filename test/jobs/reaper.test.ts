import { Reaper } from '../../src/jobs/reaper.ts';
import { eventually } from '../streams/logs.ts';
import { memoryPlace, type Place, type Replica, redisPlace, testKind } from './replicas.ts';

const kind = testKind();
const HOLD_OFF_MS = 10_000;

/** A reaper of a replica that looks when it is told to, at whatever time that is. */
class Looking {
  reaped = 0;
  private later = 0;
  private readonly reaper: Reaper;

  private constructor({ store, name }: Replica) {
    this.reaper = new Reaper({
      ...{ store, replica: name, kindOf: () => kind, holdOffMs: HOLD_OFF_MS, unknownKind: () => {} },
      reaped: () => this.reaped++,
      now: () => performance.now() + this.later,
    });
  }

  static async by(replica: Replica): Promise<Looking> {
    await eventually(() => replica.store.steadySince() < Number.POSITIVE_INFINITY);
    return new Looking(replica);
  }

  async look(afterMs = 0): Promise<number> {
    this.later += afterMs;
    await this.reaper.look();
    return this.reaped;
  }
}

const start = async ({ jobs }: Replica): Promise<string> =>
  (await jobs.start({ kind, principal: 'ann', events: ['one'] }, () => new Promise(() => {}))).id;

/** Running jobs whose gateway is gone; the id of one of them. */
const orphans = async (place: Place, count = 1): Promise<string> => {
  const owner = await place.replica({ kinds: [kind] });
  const [id = ''] = await Promise.all(Array.from({ length: count }, () => start(owner)));
  await owner.jobs.close();
  await owner.store.retire(owner.name);
  return id;
};

describe.each([memoryPlace(), redisPlace()])('the reaper on $name', (place) => {
  beforeAll(() => place.start());
  afterAll(() => place.stop());
  beforeEach(() => place.clear());

  it('ends a job when its owner was absent all the time, not sooner', async () => {
    const id = await orphans(place);
    const replica = await place.replica({ kinds: [kind] });
    const reaper = await Looking.by(replica);
    expect(await reaper.look()).toBe(0);
    expect(await reaper.look(HOLD_OFF_MS / 2)).toBe(0);
    expect(await reaper.look(HOLD_OFF_MS / 2)).toBe(1);
    expect(await replica.jobs.find(id)).toMatchObject({ state: 'interrupted', last: 3 });
  });

  it('begins anew with an owner that was seen in between', async () => {
    const owner = await place.replica({ kinds: [kind] });
    const id = await start(owner);
    const replica = await place.replica({ kinds: [kind] });
    const reaper = await Looking.by(replica);
    await owner.store.retire(owner.name);
    expect(await reaper.look()).toBe(0);
    await owner.store.renew(owner.name);
    expect(await reaper.look(HOLD_OFF_MS)).toBe(0);
    await owner.store.retire(owner.name);
    expect(await reaper.look()).toBe(0);
    expect(await replica.jobs.find(id)).toMatchObject({ state: 'running' });
  });

  // Both had read the job before either of them ended it; the fence let one through, and both counted it.
  it('counts a job once that several gateways end at the same moment', async () => {
    await orphans(place, 20);
    const replicas = [await place.replica({ kinds: [kind] }), await place.replica({ kinds: [kind] })];
    const reapers = await Promise.all(replicas.map((replica) => Looking.by(replica)));
    await Promise.all(reapers.map((reaper) => reaper.look()));
    await Promise.all(reapers.map((reaper) => reaper.look(HOLD_OFF_MS)));
    expect(reapers.reduce((sum, { reaped }) => sum + reaped, 0)).toBe(20);
  });
});

describe('the reaper on a Redis that comes and goes', () => {
  const place = redisPlace();
  let id: string;
  let replica: Replica;
  let reaper: Looking;

  beforeAll(() => place.start());
  afterAll(() => place.stop());
  beforeEach(async () => {
    await place.clear();
    id = await orphans(place);
    replica = await place.replica({ kinds: [kind] });
    reaper = await Looking.by(replica);
    expect(await reaper.look()).toBe(0);
  });

  it('begins anew when a look has failed: who could not be seen was not absent', async () => {
    await place.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually(async () => (await replica.store.alive('nobody').catch(() => 'away')) === 'away');
    expect(await reaper.look()).toBe(0);
    await eventually(async () => (await replica.store.alive('nobody').catch(() => 'away')) === false);
    expect(await reaper.look(HOLD_OFF_MS)).toBe(0);
    expect(await reaper.look(HOLD_OFF_MS)).toBe(1);
  });

  it('begins anew when the feed was lost, and waits while it is away', async () => {
    const before = replica.store.steadySince();
    await place.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => replica.store.steadySince() === Number.POSITIVE_INFINITY);
    expect(await reaper.look(HOLD_OFF_MS)).toBe(0);
    await eventually(() => replica.store.steadySince() < Number.POSITIVE_INFINITY);
    expect(replica.store.steadySince()).toBeGreaterThan(before);
    expect(await replica.jobs.find(id)).toMatchObject({ state: 'running' });
    expect(await reaper.look(HOLD_OFF_MS)).toBe(1);
  });
});
