import { Redis } from 'ioredis';
import {
  ISSUED_MS,
  OPEN_MS,
  REJOIN_MS,
  type SessionDirectory,
  TOMBSTONE_MS,
} from '../../src/environments/directory.ts';
import { MemoryDirectory } from '../../src/environments/memory-directory.ts';
import { RedisDirectory } from '../../src/environments/redis-directory.ts';
import { RedisLog } from '../../src/streams/redis/redis-log.ts';
import { parseRedisUrl } from '../../src/streams/redis/settings.ts';
import { keepAll, ready } from '../streams/logs.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

interface Place {
  readonly name: string;
  start(): Promise<void>;
  directory(): Promise<SessionDirectory>;
  /** As if so much time had passed for everything that is kept. */
  pass(ms: number): Promise<void>;
  forget(): Promise<void>;
  stop(): Promise<void>;
}

const memory = (): Place => {
  let now = 1_000_000;
  let directory = new MemoryDirectory(() => now);
  return {
    name: 'memory',
    start: async () => {},
    directory: async () => directory,
    pass: async (ms) => {
      now += ms;
    },
    forget: async () => {
      directory = new MemoryDirectory(() => now);
    },
    stop: async () => {},
  };
};

const redis = (): Place => {
  let server: RunningRedis;
  let admin: Redis;
  let log: RedisLog;
  return {
    name: 'redis',
    start: async () => {
      server = await startRedis();
      admin = new Redis(server.port, '127.0.0.1');
      log = new RedisLog({ settings: parseRedisUrl(server.url), limitsOf: keepAll, replica: 'here' });
      await ready(log);
    },
    directory: async () => {
      const [part] = log.parts;
      if (!part) throw new Error('no partition');
      return new RedisDirectory(part, part.keys.base);
    },
    pass: async (ms) => {
      for (const key of await admin.keys('*:ors:*')) {
        const left = await admin.pttl(key);
        if (left === -1) continue; // it would stay for ever
        if (left <= ms) await admin.del(key);
        else await admin.pexpire(key, left - ms);
        if ((await admin.type(key)) !== 'hash') continue;
        const asked = await admin.hget(key, 'a');
        if (asked !== null) await admin.hset(key, 'a', Number(asked) - ms);
      }
    },
    forget: async () => {
      for (const key of await admin.keys('*:ors:*')) await admin.del(key);
    },
    stop: async () => {
      await log.close();
      admin.disconnect();
      await server.stop();
    },
  };
};

describe.each([memory(), redis()])('the directory of sessions ($name)', (place) => {
  let directory: SessionDirectory;
  beforeAll(() => place.start());
  afterAll(() => place.stop());
  beforeEach(async () => {
    await place.forget();
    directory = await place.directory();
  });

  it('knows an id that was issued, and forgets it when nobody uses it', async () => {
    expect(await directory.visit('a')).toBeUndefined();
    await directory.issue('a');
    expect(await directory.visit('a')).toMatchObject({ state: 'issued' });
    await place.pass(ISSUED_MS);
    expect(await directory.visit('a')).toBeUndefined();
  });

  it('drops an id that was issued, and no other', async () => {
    await directory.issue('a');
    await directory.drop('a');
    expect(await directory.visit('a')).toBeUndefined();
    await directory.open('a', 'one', 'sums');
    await directory.drop('a');
    expect(await directory.visit('a')).toMatchObject({ state: 'open' });
  });

  it('does not take an open session for a new one when its id is issued again', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.issue('a');
    expect(await directory.visit('a')).toEqual({ state: 'open', owner: 'one', environment: 'sums' });
  });

  it('keeps an open session for as long as any, though its id is issued again', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.issue('a');
    await place.pass(OPEN_MS - 1_000);
    expect(await directory.visit('a')).toMatchObject({ state: 'open' });
    await place.pass(1_000);
    expect(await directory.visit('a')).toBeUndefined();
  });

  it('does not forget what is in use while it tidies up', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.issue('b');
    await place.pass(60_000);
    await directory.issue('c');
    for (const key of ['a', 'b', 'c']) expect(await directory.visit(key)).toBeDefined();
  });

  it('opens an id once, and tells the second who has it', async () => {
    await directory.issue('a');
    expect(await directory.open('a', 'one', 'sums')).toBe('opened');
    expect(await directory.open('a', 'two', 'maze')).toEqual({ state: 'open', owner: 'one', environment: 'sums' });
    expect(await directory.visit('a')).toEqual({ state: 'open', owner: 'one', environment: 'sums' });
  });

  it('lets an owner open again what it could not close', async () => {
    await directory.open('a', 'one', 'sums');
    expect(await directory.open('a', 'one', 'maze')).toBe('opened');
    expect(await directory.visit('a')).toMatchObject({ environment: 'maze' });
  });

  it('remembers how a session ended, until its id is used again or an hour has passed', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.close('a', 'one', 'expired');
    expect(await directory.visit('a')).toEqual({ state: 'expired', owner: 'one', environment: 'sums' });
    expect(await directory.open('a', 'two', 'sums')).toBe('opened');
    await place.pass(OPEN_MS - 1_000);
    await directory.close('a', 'two', 'deleted');
    await place.pass(TOMBSTONE_MS - 1_000); // an hour from its end, not from its last sign of life
    expect(await directory.visit('a')).toMatchObject({ state: 'deleted' });
    await place.pass(1_000);
    expect(await directory.visit('a')).toBeUndefined();
  });

  it('is closed by its owner only, and once', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.close('a', 'two', 'lost');
    expect(await directory.visit('a')).toMatchObject({ state: 'open' });
    await directory.close('a', 'one', 'deleted');
    await directory.close('a', 'one', 'expired');
    expect(await directory.visit('a')).toMatchObject({ state: 'deleted' });
  });

  it('keeps what its owner renews, and gives it back to a store that has lost it', async () => {
    await directory.open('a', 'one', 'sums');
    await place.pass(OPEN_MS - 1_000);
    expect(await directory.renew('a', 'one', 'sums')).toEqual({ askedAgoMs: undefined });
    await place.pass(OPEN_MS - 1_000);
    expect(await directory.visit('a')).toMatchObject({ state: 'open' });
    await place.forget();
    directory = await place.directory();
    expect(await directory.renew('a', 'one', 'sums')).toEqual({ askedAgoMs: undefined });
    expect(await directory.visit('a')).toEqual({ state: 'open', owner: 'one', environment: 'sums' });
  });

  it('tells its owner how long ago another replica was asked for it', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.visit('a');
    await place.pass(60_000);
    const renewed = await directory.renew('a', 'one', 'sums');
    const ago = renewed === 'taken' ? Number.NaN : (renewed.askedAgoMs ?? Number.NaN);
    expect(ago).toBeGreaterThanOrEqual(60_000);
    expect(ago).toBeLessThan(70_000);
    await place.pass(60_000);
    expect(await directory.renew('a', 'one', 'sums')).not.toEqual({ askedAgoMs: undefined });
  });

  it('does not take a question about an earlier session of that id for one about this', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.visit('a');
    await directory.close('a', 'one', 'deleted');
    await directory.visit('a');
    await directory.open('a', 'one', 'sums');
    expect(await directory.renew('a', 'one', 'sums')).toEqual({ askedAgoMs: undefined });
  });

  it('gives an owner its session back though the id was issued again meanwhile', async () => {
    await directory.issue('a');
    expect(await directory.renew('a', 'one', 'sums')).toEqual({ askedAgoMs: undefined });
    expect(await directory.visit('a')).toEqual({ state: 'open', owner: 'one', environment: 'sums' });
  });

  it('tells an owner that was taken for dead that the session is not its own any more', async () => {
    await directory.open('a', 'one', 'sums');
    await directory.close('a', 'one', 'lost');
    expect(await directory.renew('a', 'one', 'sums')).toBe('taken');
    await directory.open('a', 'two', 'sums');
    expect(await directory.renew('a', 'one', 'sums')).toBe('taken');
    expect(await directory.visit('a')).toMatchObject({ owner: 'two' });
  });

  it('leads the same call again to the one that was left, once, for a minute', async () => {
    await directory.leave('a', 'call', 'task-1');
    expect(await directory.rejoin('a', 'other')).toBeUndefined();
    expect(await directory.rejoin('b', 'call')).toBeUndefined();
    expect(await directory.rejoin('a', 'call')).toBe('task-1');
    expect(await directory.rejoin('a', 'call')).toBeUndefined();
    await directory.leave('a', 'call', 'task-2');
    await place.pass(REJOIN_MS);
    expect(await directory.rejoin('a', 'call')).toBeUndefined();
  });
});
