import type { SessionDirectory } from '../../src/environments/directory.ts';
import { MemoryDirectory } from '../../src/environments/memory-directory.ts';
import type { ReplicaState } from '../../src/environments/sessions.ts';
import { sessionKey } from '../../src/environments/sessions.ts';
import { LogError } from '../../src/streams/log.ts';
import { Gate, Replica, Stage, settle } from './stage.ts';

const MINUTE = 60_000;

/** A directory that cannot be reached while the test says so. */
class Away extends MemoryDirectory {
  away = false;

  override async close(...args: Parameters<SessionDirectory['close']>): Promise<void> {
    if (this.away) throw new LogError('unavailable', 'away');
    await super.close(...args);
  }

  override async open(...args: Parameters<SessionDirectory['open']>): ReturnType<SessionDirectory['open']> {
    if (this.away) throw new LogError('unavailable', 'away');
    return super.open(...args);
  }
}

describe('sessions', () => {
  let now = 0;
  let stage: Stage;
  const open: Replica[] = [];
  const replicaWith = (hosted = stage.hosted(), options: ConstructorParameters<typeof Replica>[1] = {}): Replica => {
    const replica = new Replica([hosted], { now: () => now, ...options });
    open.push(replica);
    return replica;
  };
  beforeEach(() => {
    now = 1_000_000;
    stage = new Stage();
    stage.setup.open();
  });
  afterEach(async () => {
    for (const { sessions, failures } of open.splice(0)) {
      await sessions.close();
      expect(failures).toEqual([]);
    }
  });

  it('expire after a quarter of an hour without a request, and are gone then', async () => {
    const hosted = stage.hosted();
    const { sessions, create, watched } = bind(replicaWith(hosted));
    await create(hosted);
    await settle();
    now += 15 * MINUTE - 1;
    await sessions.sweep();
    expect(sessions.local('ann', 's')).toBeDefined();
    now += 1;
    await sessions.sweep();
    await settle();
    expect(watched.seen).toEqual(['created', 'set up', 'expired', 'torn down']);
    await expect(sessions.find('ann', 's')).rejects.toMatchObject({
      code: 'gone',
      message: expect.stringMatching(/^Session expired/),
    });
  });

  it('live on while they are asked for, here or through another replica', async () => {
    const directory = new MemoryDirectory(() => now);
    const hosted = stage.hosted();
    const one = replicaWith(hosted, { directory });
    const two = replicaWith(hosted, { directory });
    await one.create(hosted);
    for (const replica of [one, two, one, two, two]) {
      now += 14 * MINUTE;
      await replica.sessions.find('ann', 's');
      await one.sessions.sweep();
    }
    now += 14 * MINUTE;
    await one.sessions.sweep();
    expect(one.sessions.local('ann', 's')?.ended).toBeUndefined();
    now += MINUTE;
    await one.sessions.sweep();
    expect(one.sessions.local('ann', 's')?.ended).toBe('expired');
  });

  it('do not expire under a call or a question, however long it takes, and not right after it', async () => {
    const hosted = stage.hosted();
    const { sessions, create } = bind(replicaWith(hosted));
    const session = await create(hosted);
    const leave = session.admit();
    now += 100 * MINUTE;
    await sessions.sweep();
    expect(session.ended).toBeUndefined();
    leave();
    now += 14 * MINUTE;
    await sessions.sweep();
    expect(session.ended).toBeUndefined();
    const gate = new Gate();
    const asked = session.during(() => gate.promise);
    now += 100 * MINUTE;
    await sessions.sweep();
    gate.open();
    await asked;
    now += 14 * MINUTE;
    await sessions.sweep();
    expect(session.ended).toBeUndefined();
    now += MINUTE;
    await sessions.sweep();
    expect(session.ended).toBe('expired');
  });

  it('have ids of their principals: what is somebody else’s is not known', async () => {
    const hosted = stage.hosted();
    const { sessions, create } = bind(replicaWith(hosted));
    await create(hosted, 's', 'ann');
    await expect(sessions.find('bob', 's')).rejects.toMatchObject({ code: 'unknown' });
    await create(hosted, 's', 'bob'); // the same id is another session
    await sessions.end((await here(sessions, 'ann')) as never, 'deleted');
    expect(await here(sessions, 'bob')).toBeDefined();
  });

  it('cannot be created twice, on whatever replica, and can again once they are over', async () => {
    const directory = new MemoryDirectory(() => now);
    const hosted = stage.hosted();
    const one = replicaWith(hosted, { directory });
    const two = replicaWith(hosted, { directory });
    const created = await Promise.allSettled([one.create(hosted), one.create(hosted), two.create(hosted)]);
    expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(
      created.filter((one) => one.status === 'rejected' && (one.reason as Error).message === 'Session already exists'),
    ).toHaveLength(2);
    const [owner] = [one, two].filter(({ sessions }) => sessions.local('ann', 's'));
    await owner?.sessions.end(owner.sessions.local('ann', 's') as never, 'deleted');
    await two.create(hosted);
    expect(await two.sessions.find('ann', 's')).toMatchObject({ where: 'here' });
    expect(await one.sessions.find('ann', 's')).toMatchObject({
      where: 'elsewhere',
      owner: two.name,
      environment: 'stage',
    });
  });

  it('are found from every replica; one that is gone is told from one that cannot be judged', async () => {
    const directory = new MemoryDirectory(() => now);
    const hosted = stage.hosted();
    let state: ReplicaState = 'alive';
    const one = replicaWith(hosted, { directory });
    const two = replicaWith(hosted, { directory, replicaState: async () => state });
    const session = await one.create(hosted);
    expect(await two.sessions.find('ann', 's')).toMatchObject({ where: 'elsewhere', owner: one.name });
    state = 'unsure';
    await expect(two.sessions.find('ann', 's')).rejects.toMatchObject({ code: 'away' });
    await expect(two.create(hosted)).rejects.toMatchObject({ code: 'away' });
    state = 'gone';
    await expect(two.sessions.find('ann', 's')).rejects.toMatchObject({
      code: 'gone',
      message: expect.stringMatching(/gateway is gone/),
    });
    // It was only very slow: what the client was told holds.
    await one.sessions.sweep();
    await settle();
    expect(session.ended).toBe('lost');
    expect(stage.log).toEqual(['setup', 'teardown']);
  });

  it('of a lost replica give their ids free', async () => {
    const directory = new MemoryDirectory(() => now);
    const hosted = stage.hosted();
    await directory.open(sessionKey('ann', 's'), 'dead', 'stage');
    const { create, sessions } = bind(replicaWith(hosted, { directory, replicaState: async () => 'gone' }));
    await create(hosted);
    expect(await sessions.find('ann', 's')).toMatchObject({ where: 'here' });
  });

  it('are not said to be unknown while owners bring back what the store has lost', async () => {
    let recovering = true;
    const { sessions } = bind(replicaWith(stage.hosted(), { recovering: async () => recovering }));
    await expect(sessions.find('ann', 's')).rejects.toMatchObject({ code: 'away' });
    recovering = false;
    await expect(sessions.find('ann', 's')).rejects.toMatchObject({ code: 'unknown' });
  });

  it('that are only issued have no episode, and are known all the same', async () => {
    const { sessions } = bind(replicaWith());
    const sid = await sessions.issue('ann');
    expect(sid).toMatch(/^[0-9a-f-]{36}$/);
    await expect(sessions.find('ann', sid)).rejects.toMatchObject({ code: 'unknown' });
    expect(await sessions.isKnown('ann', sid)).toBe(true);
    expect(await sessions.isKnown('ann', 'another')).toBe(false);
    expect(await sessions.isKnown('bob', sid)).toBe(false);
  });

  it('wait for a place in their environment, in the order in which they came', async () => {
    const hosted = stage.hosted({ maxSessions: 1, maxQueued: 2 });
    const { sessions, create } = bind(replicaWith(hosted));
    const first = await create(hosted, 'first');
    const second = await create(hosted, 'second');
    const third = await create(hosted, 'third');
    await expect(create(hosted, 'fourth')).rejects.toMatchObject({ code: 'full' });
    await settle();
    expect([first.state, second.state, third.state]).toEqual(['ready', 'waiting', 'waiting']);
    expect(sessions.counts().get('stage')).toMatchObject({ ready: 1, waiting: 2 });
    const prompt = second.prompt(MINUTE);
    await sessions.end(first, 'deleted');
    expect(await prompt).toHaveLength(1);
    expect(third.state).toBe('waiting');
    await sessions.end(third, 'deleted'); // leaves the line, and frees no place
    const fifth = await create(hosted, 'fifth');
    expect(fifth.state).toBe('waiting');
    await sessions.end(second, 'deleted');
    await settle();
    expect(fifth.state).toBe('ready');
  });

  it('whose setup has failed leave their place to the next', async () => {
    const hosted = stage.hosted({ maxSessions: 1, maxQueued: 1 });
    const { create } = bind(replicaWith(hosted));
    stage.setup = new Gate();
    const first = await create(hosted, 'first');
    const second = await create(hosted, 'second');
    const failing = stage.setup;
    stage.setup = new Gate();
    stage.setup.open();
    failing.fail(new Error('no'));
    await settle();
    expect([first.state, second.state]).toEqual(['failed', 'ready']);
  });

  it('of a principal are limited', async () => {
    let places = 1;
    const acquire = async () => {
      if (places === 0) return undefined;
      places--;
      return () => places++;
    };
    const hosted = stage.hosted();
    const { sessions, create } = bind(replicaWith(hosted, { acquire }));
    const first = await create(hosted, 'first');
    await expect(create(hosted, 'second')).rejects.toMatchObject({ code: 'full' });
    await sessions.end(first, 'deleted');
    await create(hosted, 'second');
    await expect(create(hosted, 'third', 'ann')).rejects.toMatchObject({ code: 'full' });
  });

  it('that could not be created leave nothing behind', async () => {
    const directory = new Away(() => now);
    const released: string[] = [];
    const hosted = stage.hosted();
    const acquire = async () => () => released.push('released');
    const { sessions, create } = bind(replicaWith(hosted, { directory, acquire }));
    directory.away = true;
    await expect(create(hosted)).rejects.toMatchObject({ code: 'unavailable' });
    expect(released).toEqual(['released']);
    expect(stage.log).toEqual([]);
    directory.away = false;
    await expect(
      sessions.create(hosted, { sid: 's', principal: 'ann', choice: { split: 'no', index: 0 }, secrets: {} }),
    ).rejects.toMatchObject({ code: 'invalid_split' });
    expect(await sessions.isKnown('ann', 's')).toBe(false);
    await create(hosted);
  });

  it('are all torn down when the gateway stops, and none is created after that', async () => {
    const hosted = stage.hosted();
    const replica = replicaWith(hosted);
    await replica.create(hosted, 'a');
    await replica.create(hosted, 'b');
    await settle();
    await replica.sessions.close();
    expect(stage.log).toEqual(['setup', 'setup', 'teardown', 'teardown']);
    await expect(replica.create(hosted, 'c')).rejects.toMatchObject({ code: 'away' });
    await expect(replica.sessions.find('ann', 'a')).rejects.toMatchObject({
      code: 'gone',
      message: expect.stringMatching(/stopped/),
    });
  });

  it('that end while the store is away are told to the others when it is back', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      const directory = new Away(() => now);
      const hosted = stage.hosted();
      const one = replicaWith(hosted, { directory });
      const two = replicaWith(hosted, { directory });
      const session = await one.create(hosted);
      directory.away = true;
      await one.sessions.end(session, 'deleted');
      expect(await two.sessions.find('ann', 's')).toMatchObject({ where: 'elsewhere' });
      directory.away = false;
      await jest.advanceTimersByTimeAsync(1_000);
      await expect(two.sessions.find('ann', 's')).rejects.toMatchObject({ code: 'gone', message: 'Session deleted' });
    } finally {
      jest.useRealTimers();
    }
  });
});

/** The parts of a replica that tests name most. */
const bind = (replica: Replica) => ({
  sessions: replica.sessions,
  watched: replica.watched,
  create: (...args: Parameters<Replica['create']>) => replica.create(...args),
});

const here = async (sessions: Replica['sessions'], principal: string): Promise<unknown> => {
  const found = await sessions.find(principal, 's');
  return found.where === 'here' ? found.session : undefined;
};
