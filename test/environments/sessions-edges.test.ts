import type { SessionDirectory, SessionEntry } from '../../src/environments/directory.ts';
import { episodeIdOf, holderOf, replicaOf } from '../../src/environments/holder.ts';
import { MemoryDirectory } from '../../src/environments/memory-directory.ts';
import { sessionKey } from '../../src/environments/sessions.ts';
import { LogError } from '../../src/streams/log.ts';
import { BareEnvironment } from './bare.ts';
import { Gate, Replica, Stage, settle } from './stage.ts';

const MINUTE = 60_000;

/** A directory whose answers come when the test says so. */
class Slow extends MemoryDirectory {
  opening: Promise<void> = Promise.resolve();
  renewing: Promise<void> = Promise.resolve();
  renewed = 0;

  override async open(...args: Parameters<SessionDirectory['open']>): Promise<'opened' | SessionEntry> {
    await this.opening;
    return super.open(...args);
  }

  override async renew(...args: Parameters<SessionDirectory['renew']>): ReturnType<SessionDirectory['renew']> {
    this.renewed++;
    await this.renewing;
    return super.renew(...args);
  }
}

describe('sessions at their edges', () => {
  let now: number;
  let stage: Stage;
  let directory: Slow;
  let replica: Replica;
  const start = (hosted = stage.hosted(), options: ConstructorParameters<typeof Replica>[1] = {}): Replica => {
    replica = new Replica([hosted], { now: () => now, directory, ...options });
    return replica;
  };
  beforeEach(() => {
    now = 1_000_000;
    stage = new Stage();
    stage.setup.open();
    directory = new Slow(() => now);
  });
  afterEach(async () => {
    stage.teardown.open();
    await replica.sessions.close();
    expect(replica.failures).toEqual([]);
  });

  it('have names that no other principal can make up', () => {
    start();
    expect(sessionKey('a', 'bc')).not.toBe(sessionKey('ab', 'c'));
    expect(sessionKey('1', '1:x')).not.toBe(sessionKey('11:', 'x'));
    const holder = holderOf('replica', 'episode');
    expect([replicaOf(holder), episodeIdOf(holder)]).toEqual(['replica', 'episode']);
  });

  it('that are there already are said to be there, even to those who may have no more', async () => {
    let places = 1;
    const hosted = stage.hosted();
    start(hosted, { acquire: async () => (places-- > 0 ? () => {} : undefined) });
    await replica.create(hosted);
    await expect(replica.create(hosted)).rejects.toMatchObject({ code: 'exists' });
    expect(places).toBe(0);
  });

  it('for which there is no room cost their principal nothing, and leave no trace', async () => {
    let acquired = 0;
    const hosted = stage.hosted({ maxSessions: 1 });
    start(hosted, {
      acquire: async () => {
        acquired++;
        return () => acquired--;
      },
    });
    await replica.create(hosted, 'first');
    await expect(replica.create(hosted, 'second')).rejects.toMatchObject({ code: 'full' });
    expect(acquired).toBe(1);
    expect(await replica.sessions.isKnown('ann', 'second')).toBe(false);
    // Two at the same moment see one place: the second is refused when it is its turn, and forgotten.
    await replica.sessions.end(replica.sessions.local('ann', 'first') as never, 'deleted');
    const both = await Promise.allSettled([replica.create(hosted, 'third'), replica.create(hosted, 'fourth')]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(acquired).toBe(1);
    await settle();
    await expect(replica.sessions.find('ann', 'fourth')).rejects.toMatchObject({ code: 'gone' });
  });

  it('are known from the moment they are wanted; who waits for one that does not come is told', async () => {
    const hosted = stage.hosted();
    start(hosted);
    const gate = new Gate();
    directory.opening = gate.promise;
    const created = replica.create(hosted).catch((error: unknown) => error);
    await settle();
    expect(await replica.sessions.isKnown('ann', 's')).toBe(true);
    const session = replica.sessions.local('ann', 's');
    const prompt = session?.prompt(MINUTE).catch((error: unknown) => error);
    gate.fail(new LogError('unavailable', 'away'));
    expect(await created).toMatchObject({ code: 'unavailable' });
    expect(await prompt).toMatchObject({ code: 'gone' });
    expect(stage.log).toEqual([]);
    directory.opening = Promise.resolve();
  });

  it('do not expire as long as somebody finds them, nor because others have asked long ago', async () => {
    const hosted = stage.hosted();
    start(hosted);
    const session = await replica.create(hosted);
    await directory.visit(session.key); // through another replica
    for (let i = 0; i < 3; i++) {
      now += 14 * MINUTE;
      await replica.sessions.find('ann', 's');
      await replica.sessions.sweep();
      expect(session.ended).toBeUndefined();
    }
    now += 15 * MINUTE;
    await replica.sessions.sweep();
    expect(session.ended).toBe('expired');
  });

  it('that the directory has here, and nobody else has, are unknown', async () => {
    start();
    await directory.open(sessionKey('ann', 's'), holderOf(replica.name, 'before'), 'stage');
    await expect(replica.sessions.find('ann', 's')).rejects.toMatchObject({ code: 'unknown' });
  });

  it('leave their place when their teardown is over, not before', async () => {
    const hosted = stage.hosted({ maxSessions: 1, maxQueued: 1 });
    start(hosted);
    const first = await replica.create(hosted, 'first');
    const second = await replica.create(hosted, 'second');
    await settle();
    stage.teardown = new Gate();
    const ended = replica.sessions.end(first, 'deleted');
    await settle();
    expect(stage.log).toEqual(['setup', 'teardown']);
    expect(second.state).toBe('waiting');
    stage.teardown.open();
    await ended;
    await settle();
    expect(second.state).toBe('ready');
  });

  it('that end while they wait for a place never begin, though one comes free at that moment', async () => {
    const bare = new BareEnvironment();
    const hosted = { ...stage.hosted({ maxSessions: 1, maxQueued: 1 }), environment: bare };
    start(hosted);
    const first = await replica.create(hosted, 'first');
    const second = await replica.create(hosted, 'second');
    await settle();
    const closed = second.close('deleted'); // the place of the first is free before the second has left the line
    await replica.sessions.end(first, 'deleted');
    await closed;
    await settle();
    expect(bare.log).toEqual(['open', 'close']);
    await replica.sessions.end(second, 'deleted');
  });

  it('that are ended once more do not end the next one with their id', async () => {
    const hosted = stage.hosted();
    let left = 0;
    start(hosted, { acquire: async () => () => left++ });
    const first = await replica.create(hosted);
    await replica.sessions.end(first, 'deleted');
    const second = await replica.create(hosted);
    await replica.sessions.end(first, 'expired');
    expect(replica.sessions.local('ann', 's')).toBe(second);
    expect(second.ended).toBeUndefined();
    expect(left).toBe(1);
    expect(replica.watched.seen.filter((word) => word === 'deleted' || word === 'expired')).toEqual(['deleted']);
  });

  it('are all looked after, however many there are, by one look at a time', async () => {
    const hosted = stage.hosted();
    start(hosted);
    for (let i = 0; i < 401; i++) await replica.create(hosted, `s${i}`);
    const sweeps = [replica.sessions.sweep(), replica.sessions.sweep()];
    expect(sweeps[0]).toBe(sweeps[1]);
    await Promise.all(sweeps);
    expect(directory.renewed).toBe(401);
  });

  it('are looked after again when the store is back, and nobody is bothered meanwhile', async () => {
    const hosted = stage.hosted();
    start(hosted);
    const session = await replica.create(hosted);
    const away = new Gate();
    directory.renewing = away.promise;
    away.fail(new LogError('unavailable', 'away'));
    now += 20 * MINUTE;
    await replica.sessions.sweep();
    expect(session.ended).toBeUndefined(); // perhaps it was asked for elsewhere
    directory.renewing = Promise.resolve();
    await replica.sessions.sweep();
    expect(session.ended).toBe('expired');
  });

  it('are not renewed while they are torn down', async () => {
    const hosted = stage.hosted();
    start(hosted);
    const session = await replica.create(hosted);
    await settle();
    stage.teardown = new Gate();
    const ended = replica.sessions.end(session, 'deleted');
    await settle();
    await replica.sessions.sweep();
    expect(directory.renewed).toBe(0);
    stage.teardown.open();
    await ended;
  });

  it('end behind the look that is under way when the gateway stops, and as stopped', async () => {
    const hosted = stage.hosted();
    start(hosted);
    const session = await replica.create(hosted);
    await settle();
    const gate = new Gate();
    directory.renewing = gate.promise;
    void replica.sessions.sweep();
    const closed = replica.sessions.close();
    await settle();
    expect(session.ended).toBeUndefined();
    gate.open();
    await closed;
    expect(session.ended).toBe('stopped');
    expect(await directory.visit(session.key)).toMatchObject({ state: 'stopped' });
  });
});
