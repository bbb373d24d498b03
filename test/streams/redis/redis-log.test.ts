import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Hub } from '../../../src/streams/hub.ts';
import type { StoredEvent } from '../../../src/streams/log.ts';
import { ORIGIN } from '../../../src/streams/position.ts';
import { RedisLog, type RedisLogOptions } from '../../../src/streams/redis/redis-log.ts';
import { parseRedisUrl, type RedisSettings } from '../../../src/streams/redis/settings.ts';
import { type RunningRedis, startCluster, startRedis, startSentinel } from '../../support/redis.ts';
import { eventually, keepAll, ready } from '../logs.ts';
import { Recorder } from '../recorder.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const open = async (settings: RedisSettings | string, more: Partial<RedisLogOptions> = {}): Promise<RedisLog> => {
  const log = new RedisLog({
    settings: typeof settings === 'string' ? parseRedisUrl(settings) : settings,
    limitsOf: keepAll,
    ...more,
  });
  closing.push(() => log.close());
  return ready(log);
};

const hubOn = (log: RedisLog): Hub => {
  const hub = new Hub(log);
  closing.push(() => hub.close());
  return hub;
};

const connect = (port: number): Redis => {
  const redis = new Redis(port, '127.0.0.1');
  redis.on('error', () => {});
  closing.push(() => redis.disconnect());
  return redis;
};

const serve = async (extra: Record<string, string> = {}): Promise<RunningRedis> => {
  const server = await startRedis(extra);
  closing.push(() => server.stop());
  return server;
};

const succeeds = (attempt: Promise<unknown>): Promise<boolean> =>
  attempt.then(
    () => true,
    () => false,
  );

const stored = async (log: RedisLog, channel: string): Promise<readonly StoredEvent[]> =>
  (await log.read(log.partitionOf(channel), [channel], ORIGIN, 10_000)).channels.get(channel)?.events ?? [];

describe('on one server', () => {
  it('follows on one replica what is published on another, and resumes on either', async () => {
    const { url } = await serve();
    const [one, two] = [await open(url), await open(url)];
    const [hub, other] = [hubOn(one), hubOn(two)];
    const first = new Recorder(hub, { names: ['a', 'b'] });
    await eventually(() => first.isConnected);
    await two.append([{ channel: 'a', data: '1' }]);
    await eventually(() => first.story.length === 1);
    first.following.close();
    await one.append([{ channel: 'b', data: '2' }]);
    const second = new Recorder(other, { names: ['a', 'b'], cursor: first.lastId });
    await eventually(() => second.story.length === 1);
    expect(second).toMatchObject({ resumed: true, story: ['2'] });
  });

  it('subscribes only to what is followed, and to everything for a pattern', async () => {
    const { url, port } = await serve();
    const hub = hubOn(await open(url, { replica: 'me' }));
    const admin = connect(port);
    const topics = async (): Promise<string[]> => ((await admin.call('PUBSUB', 'SHARDCHANNELS')) as string[]).sort();
    expect(await topics()).toEqual(['sluice:{0}:r:me']);
    const named = new Recorder(hub, { names: ['a', 'b'] });
    await eventually(() => named.isConnected);
    expect(await topics()).toEqual(['sluice:{0}:r:me', 'sluice:{0}:s:a', 'sluice:{0}:s:b']);
    const pattern = new Recorder(hub, { patterns: ['x.*'] });
    await eventually(() => pattern.isConnected);
    expect(await topics()).toContain('sluice:{0}:all');
  });

  it('lets go of what nobody has followed for a while, and of nothing that somebody still follows', async () => {
    const { url, port } = await serve();
    const log = await open(url, { replica: 'me' });
    const hub = hubOn(log);
    const admin = connect(port);
    const topics = async (): Promise<string[]> =>
      ((await admin.call('PUBSUB', 'SHARDCHANNELS')) as string[]).map((topic) => topic.split('}:')[1] as string).sort();
    const pattern = new Recorder(hub, { patterns: ['a.*'] });
    await eventually(() => pattern.isConnected);
    // These rest on the pattern's feed of everything, and are not followed by name.
    const [stays, goes] = [new Recorder(hub, { names: ['a.1'] }), new Recorder(hub, { names: ['a.2'] })];
    await eventually(() => stays.isConnected && goes.isConnected);
    expect(await topics()).toEqual(['all', 'r:me']);
    pattern.following.close();
    goes.following.close();
    hub.sweep(performance.now() + 9_000);
    expect(await topics()).toEqual(['all', 'r:me']);
    hub.sweep(performance.now() + 11_000);
    await eventually(async () => (await topics()).join() === 'r:me,s:a.1');
    await log.append([
      { channel: 'a.1', data: '1' },
      { channel: 'a.2', data: '2' },
    ]);
    await eventually(() => stays.story.length === 1);
    // What is followed again is loaded again.
    const again = new Recorder(hub, { patterns: ['a.*'], cursor: goes.lastId });
    await eventually(() => again.story.length === 2);
    expect(again.story).toEqual(['1', '2']);
    again.following.close();
    stays.following.close();
    hub.sweep(performance.now() + 11_000);
    hub.sweep(performance.now() + 22_000);
    await eventually(async () => (await topics()).join() === 'r:me');
  });

  it('refuses at once what it could not send, and what was sent only when it can no longer appear', async () => {
    const server = await serve();
    const log = await open(server.url);
    const errors: { at: number; deadline: number; data: string }[] = [];
    const acknowledged: string[] = [];
    const publishing: Promise<void>[] = [];
    const publish = async (data: string): Promise<void> => {
      const deadline = log.now(0) + 2_000;
      try {
        await log.append([{ channel: 'a', data }]);
        acknowledged.push(data);
      } catch {
        errors.push({ at: log.now(0), deadline, data });
      }
    };
    let n = 0;
    const timer = setInterval(() => publishing.push(publish(String(n++))), 10);
    await sleep(200);
    server.child.kill('SIGSTOP');
    await sleep(5_000);
    server.child.kill('SIGCONT');
    await eventually(() => log.health().every(({ up }) => up));
    await sleep(300);
    clearInterval(timer);
    await Promise.all(publishing);
    const kept = new Map((await stored(log, 'a')).map((event) => [event.data, event]));
    for (const data of acknowledged.slice(-100)) expect(kept.has(data)).toBe(true);
    for (const { data, deadline } of errors) {
      const appeared = kept.get(data);
      if (appeared) expect(appeared.ms).toBeLessThanOrEqual(deadline + 2);
    }
    // Some waited for their deadline, the later ones were refused at once.
    expect(errors.filter(({ at, deadline }) => at >= deadline).length).toBeGreaterThan(20);
    expect(errors.filter(({ at, deadline }) => at < deadline - 1_900).length).toBeGreaterThan(20);
    expect(acknowledged.length).toBeGreaterThan(20);
  }, 20_000);

  it('answers a publish whose connection broke only when it can no longer appear', async () => {
    const server = await serve();
    const log = await open(server.url);
    server.child.kill('SIGSTOP');
    const begin = performance.now();
    const answer = log.append([{ channel: 'a', data: '1' }]).catch((error: unknown) => error);
    setTimeout(() => server.child.kill('SIGKILL'), 50);
    expect(await answer).toMatchObject({ code: 'unavailable' });
    expect(performance.now() - begin).toBeGreaterThan(1_990);
  });

  it('does not take a pause for a loss', async () => {
    const server = await serve();
    const log = await open(server.url);
    const follower = new Recorder(hubOn(log), { names: ['a'] });
    await eventually(() => follower.isConnected);
    await log.append([{ channel: 'a', data: '1' }]);
    server.child.kill('SIGSTOP');
    await sleep(2_500); // longer than a mark may take: the connections are given up
    server.child.kill('SIGCONT');
    await eventually(() => log.health().every(({ up }) => up));
    await log.append([{ channel: 'a', data: '2' }]);
    await eventually(() => follower.story.includes('2'));
    expect(follower.story).toEqual(['1', '2']);
  }, 15_000);

  it('tells followers when the server was restarted, and goes on', async () => {
    const server = await serve();
    const log = await open(server.url);
    const follower = new Recorder(hubOn(log), { names: ['a'] });
    await eventually(() => follower.isConnected);
    await log.append([{ channel: 'a', data: '1' }]);
    await eventually(() => follower.story.length === 1);
    await server.stop();
    await expect(log.append([{ channel: 'a', data: 'away' }])).rejects.toMatchObject({ code: 'unavailable' });
    await serve({ port: String(server.port) });
    await eventually(() => follower.resyncs.length === 1);
    await log.append([{ channel: 'a', data: '2' }]);
    await eventually(() => follower.story.includes('2'));
    expect(follower.story).toEqual(['1', '!epoch_changed a', '2']);
  }, 15_000);

  it('is never half written when its memory is full, and goes on delivering', async () => {
    const server = await serve({ 'maxmemory-policy': 'noeviction' });
    const log = await open(server.url);
    const admin = connect(server.port);
    await log.append([{ channel: 'a', data: '1' }]);
    await admin.config('SET', 'maxmemory', '1');
    await expect(log.append([{ channel: 'a', data: '2' }])).rejects.toMatchObject({ code: 'unavailable' });
    const follower = new Recorder(hubOn(log), { names: ['a'], cursor: 'unknown' });
    await eventually(() => follower.story.length === 2);
    expect(follower.story).toEqual(['!unknown_id a', '1']);
    await admin.config('SET', 'maxmemory', '0');
    await log.append([{ channel: 'a', data: '3' }]);
    await eventually(() => follower.story.length === 3);
    expect((await stored(log, 'a')).map(({ seq, prev }) => [seq, prev])).toEqual([
      [1, 0],
      [2, 1],
    ]);
  });

  it('is not stopped half way by a key of somebody else', async () => {
    const server = await serve();
    const log = await open(server.url);
    const admin = connect(server.port);
    const both = ['a', 'b'].map((channel) => ({ channel, data: 'before' }));
    await log.append(both);
    await admin.set('sluice:{0}:s:b', 'not a stream');
    await admin.xadd('sluice:{0}:s:a', '99999999999999-1', 'd', 'from the future');
    await log.append([
      { channel: 'a', data: '1' },
      { channel: 'b', data: '2' },
    ]);
    expect((await stored(log, 'a')).map(({ data }) => data)).toEqual(['1']);
    expect((await stored(log, 'b')).map(({ data }) => data)).toEqual(['2']);
  });

  it('passes over entries of a future that was lost', async () => {
    const server = await serve();
    const log = await open(server.url);
    const admin = connect(server.port);
    await log.append(Array.from({ length: 9 }, (_, i) => ({ channel: 'a', data: `old ${i}` })));
    await admin.del('sluice:{0}:meta', 'sluice:{0}:last'); // as an eviction would: the streams are still there
    await log.append([{ channel: 'b', data: 'new' }]);
    const follower = new Recorder(hubOn(log), { names: ['a', 'b'], cursor: 'unknown' });
    await eventually(() => follower.isConnected);
    await log.append([{ channel: 'a', data: '1' }]);
    await eventually(() => follower.story.includes('1'));
    expect(follower.story).toEqual(['!unknown_id a,b', 'new', '1']);
  });

  // The simulation found it: FLUSHALL between two commands of a page gave the last numbers of before and the events of after,
  // and followers were told `expired` where the epoch had changed.
  it('does not take a store that is emptied while a page is read for one that has trimmed everything', async () => {
    const { url } = await serve();
    const log = await open(url);
    await log.append(['1', '2', '3'].map((data) => ({ channel: 'a', data })));
    const redis = log.connection() as Redis;
    const pipelineOf = redis.pipeline.bind(redis);
    redis.pipeline = () => {
      const pipeline = pipelineOf();
      const script = "redis.call('FLUSHALL') return redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2])";
      pipeline.xrange = ((key: string, start: string, end: string) =>
        pipeline.eval(script, 1, key, start, end)) as never;
      return pipeline;
    };
    await expect(log.read(0, ['a'], ORIGIN, 10)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('remembers an idempotency key over the loss of the script cache and on another replica', async () => {
    const server = await serve();
    const [one, two] = [await open(server.url), await open(server.url)];
    const idempotency = { principal: 'p', key: 'k' };
    const first = await one.append([{ channel: 'a', data: '1' }], { idempotency });
    await connect(server.port).script('FLUSH');
    expect(await two.append([{ channel: 'a', data: '1' }], { idempotency })).toEqual(first);
    expect(await stored(one, 'a')).toHaveLength(1);
  });

  it('forgets an idempotency key after its time', async () => {
    const { url } = await serve();
    const log = await open(url, { idempotencyMs: 30 });
    const append = () => log.append([{ channel: 'a', data: '1' }], { idempotency: { principal: 'p', key: 'k' } });
    const [first] = await append();
    await sleep(50);
    expect((await append())[0]?.seq).toBe((first?.seq ?? 0) + 1);
  });
});

describe('settings', () => {
  it('work with a password, a user, a database and a key prefix', async () => {
    const server = await serve({ requirepass: 's3cret' });
    const admin = new Redis(server.port, '127.0.0.1', { password: 's3cret', db: 2 });
    closing.push(() => admin.disconnect());
    await admin.call('ACL', 'SETUSER', 'ann', 'on', '>pw', '~mine:*', '&mine:*', '+@all');
    const wrong = new RedisLog({ settings: parseRedisUrl(server.url), limitsOf: keepAll });
    closing.push(() => wrong.close());
    await eventually(() => wrong.health()[0]?.lastError !== undefined);
    await expect(wrong.append([{ channel: 'a', data: 'x' }])).rejects.toMatchObject({ code: 'unavailable' });
    const log = await open(parseRedisUrl(`redis://ann:pw@127.0.0.1:${server.port}/2`, { keyPrefix: 'mine:' }));
    await log.append([{ channel: 'a', data: '1' }]);
    expect((await admin.keys('*')).every((key) => key.startsWith('mine:{0}:'))).toBe(true);
    expect(await admin.exists('mine:{0}:s:a')).toBe(1);
  });

  it('work over TLS', async () => {
    const tls = join(__dirname, '../../fixtures/tls');
    const ca = readFileSync(join(tls, 'cert.pem'));
    const plain = await serve({
      'tls-port': '0',
      'tls-cert-file': join(tls, 'cert.pem'),
      'tls-key-file': join(tls, 'key.pem'),
      'tls-auth-clients': 'no',
    });
    const admin = connect(plain.port);
    const port = plain.port + 7_000;
    await admin.config('SET', 'tls-port', String(port));
    const log = await open(parseRedisUrl(`rediss://localhost:${port}`, { tls: { ca } }));
    const follower = new Recorder(hubOn(log), { names: ['a'] });
    await eventually(() => follower.isConnected);
    await log.append([{ channel: 'a', data: '1' }]);
    await eventually(() => follower.story.length === 1);
    const distrustful = new RedisLog({ settings: parseRedisUrl(`rediss://localhost:${port}`), limitsOf: keepAll });
    closing.push(() => distrustful.close());
    await eventually(() => /self.signed/i.test(distrustful.health()[0]?.lastError ?? ''));
  });
});

describe('Sentinel', () => {
  it('goes on with the new master after a failover, and tells', async () => {
    const master = await serve();
    const replica = await serve({ replicaof: `127.0.0.1 ${master.port}` });
    const watcher = connect(replica.port);
    await eventually(async () => (await watcher.info('replication')).includes('master_link_status:up'));
    const sentinel = await startSentinel('main', master.port);
    closing.push(() => sentinel.stop());
    const control = connect(sentinel.port);
    await eventually(async () => ((await control.call('SENTINEL', 'REPLICAS', 'main')) as unknown[]).length === 1);
    const log = await open(`redis+sentinel://127.0.0.1:${sentinel.port}/main`);
    const follower = new Recorder(hubOn(log), { names: ['a'] });
    await eventually(() => follower.isConnected);
    await log.append([{ channel: 'a', data: '1' }]);
    await eventually(() => follower.story.length === 1);
    await connect(master.port).call('WAIT', 1, 1_000);
    // A sentinel promotes a replica only once it has asked it how it is.
    await eventually(() => succeeds(control.call('SENTINEL', 'FAILOVER', 'main')), 20_000);
    await eventually(() => follower.resyncs.length > 0, 20_000);
    const idempotency = { principal: 'p', key: 'k' };
    await eventually(() => succeeds(log.append([{ channel: 'a', data: '2' }], { idempotency })), 20_000);
    await eventually(() => follower.story.includes('2'));
    expect(follower.story.filter((text) => text === '2')).toEqual(['2']);
    expect(follower.story[1]).toBe('!epoch_changed a');
    expect((await watcher.role())[0]).toBe('master');
  }, 60_000);
});

describe('Cluster', () => {
  it('spreads channels over partitions, resumes over all of them, and completes a batch by its idempotency key', async () => {
    const nodes = await startCluster(3);
    closing.push(() => Promise.all(nodes.map((node) => node.stop())));
    const log = await open(`redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join()}`);
    expect(log.partitions).toBe(4);
    const names = Array.from({ length: 12 }, (_, i) => `n${i}`);
    expect(new Set(names.map((name) => log.partitionOf(name))).size).toBe(4);
    const hub = hubOn(log);
    const first = new Recorder(hub, { names });
    await eventually(() => first.isConnected);
    const batch = names.map((channel) => ({ channel, data: channel }));
    const idempotency = { principal: 'p', key: 'k' };
    const places = await log.append(batch, { idempotency });
    expect(new Set(places.map(({ partition }) => partition)).size).toBe(4);
    expect(await log.append(batch, { idempotency })).toEqual(places);
    for (const partition of [0, 1, 2, 3]) {
      // A key that was used in one partition is taken in all of them.
      const key = { principal: 'p', key: `only ${partition}` };
      const [inside, outside] = [true, false].map((is) =>
        names.find((name) => (log.partitionOf(name) === partition) === is),
      );
      await log.append([{ channel: inside as string, data: 'one' }], { idempotency: key });
      await expect(
        log.append([{ channel: outside as string, data: 'other' }], { idempotency: key }),
      ).rejects.toMatchObject({
        code: 'conflict',
      });
    }
    await eventually(() => first.story.length === 16);
    first.following.close();
    await log.append(batch.map(({ channel }) => ({ channel, data: `${channel} again` })));
    const second = new Recorder(hub, { names, cursor: first.lastId });
    await eventually(() => second.story.length === 12);
    expect(second.resumed).toBe(true);
    expect(await log.names('n1')).toEqual(['n1']);
  }, 30_000);

  it('follows a slot to another node', async () => {
    const nodes = await startCluster(3);
    closing.push(() => Promise.all(nodes.map((node) => node.stop())));
    const log = await open(`redis+cluster://127.0.0.1:${nodes[0]?.port}`);
    const name = Array.from({ length: 50 }, (_, i) => `n${i}`).find((n) => log.partitionOf(n) === 0) as string;
    const follower = new Recorder(hubOn(log), { names: [name] });
    await eventually(() => follower.isConnected);
    await log.append([{ channel: name, data: '1' }]);
    await eventually(() => follower.story.length === 1);
    const admins = nodes.map(({ port }) => connect(port));
    const slot = Number(await admins[0]?.cluster('KEYSLOT', 'sluice:{0}:meta'));
    const ids = await Promise.all(admins.map((admin) => admin.call('CLUSTER', 'MYID')));
    const keys = await Promise.all(admins.map((admin) => admin.cluster('COUNTKEYSINSLOT', slot)));
    const from = keys.findIndex((count) => Number(count) > 0);
    const to = (from + 1) % 3;
    const [source, target] = [admins[from] as Redis, admins[to] as Redis];
    await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[from] as string);
    await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[to] as string);
    const moving = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
    await source.call('MIGRATE', '127.0.0.1', nodes[to]?.port as number, '', 0, 5_000, 'KEYS', ...moving);
    for (const admin of [target, source, ...admins])
      await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[to] as string);
    await eventually(() => follower.resyncs.length > 0, 20_000);
    await eventually(() => succeeds(log.append([{ channel: name, data: '2' }])), 20_000);
    await eventually(() => follower.story.includes('2'));
  }, 60_000);
});
