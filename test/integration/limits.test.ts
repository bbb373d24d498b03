import { Redis } from 'ioredis';
import { eventually } from '../streams/logs.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { type RawAnswer, rawRequest } from '../support/raw-request.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const bearer = (sub = 'me'): Record<string, string> => ({ Authorization: `Bearer ${tokenFor({ sub })}` });
const streams: RawStream[] = [];
const gateways: RunningGateway[] = [];
const servers: RunningRedis[] = [];

const start = async (env: Readonly<Record<string, string>>): Promise<RunningGateway> => {
  const gateway = await startGateway(env);
  gateways.push(gateway);
  await eventually(async () => (await fetch(`${gateway.url}/readyz`)).ok);
  return gateway;
};
const store = async (): Promise<RunningRedis> => {
  const server = await startRedis();
  servers.push(server);
  return server;
};
const opened = async (on: RunningGateway, sub = 'me', more: Record<string, string> = {}): Promise<RawStream> => {
  const stream = new RawStream(on.port, '/events?channels=a', { ...bearer(sub), ...more });
  streams.push(stream);
  await eventually(() => stream.head !== '');
  if (stream.status === 200) await eventually(() => stream.frames.length > 0);
  return stream;
};
const statusOf = async (on: RunningGateway, sub = 'me'): Promise<number> => (await opened(on, sub)).status;
const publish = (on: RunningGateway, events: number, sub = 'me', headers = {}): Promise<RawAnswer> =>
  rawRequest(on.port, {
    method: 'POST',
    path: '/events',
    headers: { ...bearer(sub), ...headers },
    body: JSON.stringify(Array.from({ length: events }, (_, i) => ({ channel: 'a', data: i }))),
  });
const numbers = (stream: RawStream): number[] =>
  stream.events.map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '').payload.data as number);
const resyncs = (stream: RawStream): number =>
  stream.frames.filter((frame) => frame.startsWith('event: resync')).length;
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

afterEach(async () => {
  for (const stream of streams.splice(0)) stream.close();
  await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

describe('open streams', () => {
  it('are limited per principal, and a closed one makes room', async () => {
    const gateway = await start({ SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '2' });
    const first = await opened(gateway);
    expect(await statusOf(gateway)).toBe(200);
    const refused = await opened(gateway);
    expect(refused.status).toBe(429);
    expect(refused.head).toMatch(/^retry-after: \d+$/im);
    expect(JSON.parse(refused.body)).toEqual({
      code: 'RATE_LIMIT_EXCEEDED',
      message: 'You have as many open streams as you may.',
    });
    expect(await statusOf(gateway, 'you')).toBe(200);
    first.close();
    await eventually(async () => (await statusOf(gateway)) === 200);
    expect(await statusOf(gateway)).toBe(429);
  });

  it('are limited in total, whoever opens them', async () => {
    const gateway = await start({ SLUICE_MAX_CONNECTIONS: '2' });
    const first = await opened(gateway, 'a');
    expect(await statusOf(gateway, 'b')).toBe(200);
    const refused = await opened(gateway, 'c');
    expect(refused.status).toBe(429);
    expect(refused.body).toContain('This gateway has as many open streams as it may.');
    first.close();
    await eventually(async () => (await statusOf(gateway, 'c')) === 200);
  });

  it('do not count when they only ask for the headers, or were refused', async () => {
    const gateway = await start({ SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '1' });
    const asked = { path: '/events?channels=a', headers: bearer() };
    for (let i = 0; i < 3; i++) {
      expect((await rawRequest(gateway.port, { ...asked, method: 'HEAD' })).status).toBe(200);
      expect((await rawRequest(gateway.port, { ...asked, path: '/events?channels=..' })).status).toBe(400);
    }
    expect(await statusOf(gateway)).toBe(200);
  });

  it('are limited per principal over all replicas', async () => {
    const env = { REDIS_URL: (await store()).url, SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '2' };
    const [one, two] = await Promise.all([start(env), start(env)]);
    const first = await opened(one);
    expect(await statusOf(two)).toBe(200);
    expect([await statusOf(one), await statusOf(two)]).toEqual([429, 429]);
    expect(await statusOf(two, 'you')).toBe(200);
    first.close();
    await eventually(async () => (await statusOf(two)) === 200);
    expect([await statusOf(one), await statusOf(two)]).toEqual([429, 429]);
  });

  it('of a replica that stops make room at once', async () => {
    const env = { REDIS_URL: (await store()).url, SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '1' };
    const [one, two] = await Promise.all([start(env), start(env)]);
    await opened(one);
    expect(await statusOf(two)).toBe(429);
    await one.stop();
    expect(await statusOf(two)).toBe(200);
  });

  it('of a replica that died leave with its lease', async () => {
    const server = await store();
    const env = { REDIS_URL: server.url, SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '1' };
    const admin = new Redis(server.port, '127.0.0.1');
    // A replica with a user of its own, so that it can be shut out while the other one goes on.
    await admin.acl('SETUSER', 'doomed', 'on', '>pass', '~*', '&*', '+@all');
    const doomed = await start({ ...env, REDIS_URL: server.url.replace('//', '//doomed:pass@') });
    const alive = await start(env);
    await opened(doomed);
    expect(await statusOf(alive)).toBe(429);
    await admin.acl('DELUSER', 'doomed'); // ends its connections as well
    expect(await statusOf(alive)).toBe(429); // it may only be slow
    const [leases = ''] = await admin.keys('*connections:leases');
    const replicas = await admin.zrange(leases, '0', '-1');
    expect(replicas).toHaveLength(2);
    for (const replica of replicas) {
      expect(Number(await admin.zscore(leases, replica)) - Date.now()).toBeLessThanOrEqual(12_000);
      // As if the time had passed: all leases end now, and who lives takes a new one.
      await admin.zadd(leases, '1', replica);
    }
    await eventually(async () => (await statusOf(alive)) === 200);
    expect(await statusOf(alive)).toBe(429);
    admin.disconnect();
  });

  it('are counted by each replica for itself while Redis is away', async () => {
    const server = await store();
    const env = { REDIS_URL: server.url, SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '1' };
    const [one, two] = await Promise.all([start(env), start(env)]);
    await opened(one);
    await server.stop();
    // Accepted is all that they are: where they begin is known when the store is back.
    const accepted = async (on: RunningGateway): Promise<number> => {
      const stream = new RawStream(on.port, '/events?channels=a', bearer());
      streams.push(stream);
      await eventually(() => stream.head !== '');
      return stream.status;
    };
    await eventually(async () => (await accepted(two)) === 200);
    expect([await accepted(one), await accepted(two)]).toEqual([429, 429]);
  });
});

describe('publishing', () => {
  it('is limited per principal and second, and says when to try again', async () => {
    const gateway = await start({ SLUICE_MAX_PUBLISH_PER_SECOND: '10' });
    expect((await publish(gateway, 10)).status).toBe(201);
    const refused = await publish(gateway, 1);
    expect(refused).toMatchObject({ status: 429, json: { code: 'RATE_LIMIT_EXCEEDED' } });
    expect(Number(refused.headers['retry-after'])).toBe(1);
    expect((await publish(gateway, 10, 'you')).status).toBe(201);
    expect([...(await gateway.gateway.log.index(0)).last.values()]).toEqual([20]); // nothing of what was refused
    await eventually(async () => (await publish(gateway, 1)).status === 201, 3_000);
  });

  it('is limited over all replicas', async () => {
    const env = { REDIS_URL: (await store()).url, SLUICE_MAX_PUBLISH_PER_SECOND: '1000' };
    const [one, two] = await Promise.all([start(env), start(env)]);
    const statuses = await Promise.all([publish(one, 600), publish(two, 600)]);
    expect(statuses.map(({ status }) => status).sort()).toEqual([201, 429]);
  });

  it('is not limited at 0, nor are streams', async () => {
    const gateway = await start({
      SLUICE_MAX_PUBLISH_PER_SECOND: '0',
      SLUICE_MAX_CONNECTIONS: '0',
      SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '0',
      SLUICE_MAX_EVENTS_PER_SECOND: '0',
      SLUICE_MAX_EVENT_BYTES: '0',
      SLUICE_MAX_EVENTS_PER_POST: '0',
      SLUICE_BUFFER_EVENTS: '100000',
    });
    const [stream, ...others] = await Promise.all(upTo(120).map(() => opened(gateway)));
    expect(others.every(({ status }) => status === 200)).toBe(true);
    for (const other of others) other.close();
    const answers = await Promise.all(upTo(5).map(() => publish(gateway, 2_100)));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    await eventually(() => stream?.events.length === 10_500);
  });
});

describe('events to one stream', () => {
  it('come no faster than they may; what exceeds that comes later, in order, and none is lost', async () => {
    const gateway = await start({ SLUICE_MAX_EVENTS_PER_SECOND: '400', SLUICE_BUFFER_EVENTS: '2000' });
    const [stream, other] = [await opened(gateway), await opened(gateway, 'you')];
    const begin = performance.now();
    for (let i = 0; i < 16; i++) expect((await publish(gateway, 100)).status).toBe(201);
    expect(stream.events.length).toBeLessThanOrEqual(600); // a second's worth and the batch that passed it
    await eventually(() => stream.events.length === 1_600 && other.events.length === 1_600);
    // 400 are in hand at the start; the other 1,200 take three seconds, less the batch of 100 that may pass the limit once.
    expect(performance.now() - begin).toBeGreaterThan(2_600);
    for (const one of [stream, other]) {
      expect(numbers(one)).toEqual(upTo(1_600).map((i) => i % 100));
      expect(resyncs(one)).toBe(0);
    }
  });

  it('that leave the buffer before their turn comes are not lost in silence', async () => {
    const gateway = await start({ SLUICE_MAX_EVENTS_PER_SECOND: '100', SLUICE_BUFFER_EVENTS: '20' });
    const stream = await opened(gateway);
    for (let i = 0; i < 8; i++) await publish(gateway, 50);
    await eventually(() => numbers(stream).at(-1) === 49 && resyncs(stream) > 0);
    expect(stream.body).toContain('"reason":"');
  });
});

describe('the buffer of a channel', () => {
  const resumed = async (on: RunningGateway, id: string): Promise<RawStream> =>
    opened(on, 'me', { 'Last-Event-ID': id });

  it('keeps as many events as it is set to, and says when that was not enough', async () => {
    const gateway = await start({ SLUICE_BUFFER_EVENTS: '5' });
    const { ids } = (await publish(gateway, 10)).json as { ids: string[] };
    const enough = await resumed(gateway, ids[4] as string);
    await eventually(() => enough.events.length === 5);
    expect(numbers(enough)).toEqual([5, 6, 7, 8, 9]);
    expect(resyncs(enough)).toBe(0);
    const late = await resumed(gateway, ids[3] as string);
    await eventually(() => late.events.length === 5);
    expect(numbers(late)).toEqual([5, 6, 7, 8, 9]);
    expect(resyncs(late)).toBe(1);
  });

  it('of 0 events serves those who are there', async () => {
    const gateway = await start({ SLUICE_BUFFER_EVENTS: '0' });
    const live = await opened(gateway);
    const { ids } = (await publish(gateway, 3)).json as { ids: string[] };
    await eventually(() => live.events.length === 3);
    const late = await resumed(gateway, ids[0] as string);
    await eventually(() => resyncs(late) === 1);
    expect(late.events).toEqual([]);
  });

  it('keeps events as long as it is set to', async () => {
    const gateway = await start({ SLUICE_BUFFER_SECONDS: '1' });
    const { ids } = (await publish(gateway, 2)).json as { ids: string[] };
    const soon = await resumed(gateway, ids[0] as string);
    await eventually(() => soon.events.length === 1);
    await eventually(async () => {
      const stream = await resumed(gateway, ids[0] as string);
      stream.close();
      return resyncs(stream) === 1;
    }, 3_000);
  });
});
