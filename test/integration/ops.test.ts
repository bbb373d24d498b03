import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { eventually } from '../streams/logs.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { type RawAnswer, type RawRequest, rawRequest } from '../support/raw-request.ts';
import { RawStream } from '../support/raw-stream.ts';
import { freePort, type RunningRedis, startRedis } from '../support/redis.ts';

const bearer = { Authorization: `Bearer ${tokenFor()}` };
const admin = { Authorization: `Bearer ${tokenFor({ scope: 'admin' })}` };
const streams: RawStream[] = [];
const gateways: RunningGateway[] = [];
const servers: RunningRedis[] = [];

const start = async (env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> => {
  const gateway = await startGateway(env);
  gateways.push(gateway);
  return gateway;
};
const store = async (port?: number): Promise<RunningRedis> => {
  const server = await startRedis(port === undefined ? {} : { port: String(port) });
  servers.push(server);
  return server;
};
const get = (on: RunningGateway, path: string, headers: RawRequest['headers'] = {}): Promise<RawAnswer> =>
  rawRequest(on.port, { path, headers });
const isReady = async (on: RunningGateway): Promise<boolean> => (await get(on, '/readyz')).status === 200;
const opened = async (on: RunningGateway, channels = 'a', headers: Record<string, string> = {}): Promise<RawStream> => {
  const stream = new RawStream(on.port, `/events?channels=${channels}`, { ...bearer, ...headers });
  streams.push(stream);
  await eventually(() => stream.frames.length > 0);
  return stream;
};
const publish = (on: RunningGateway, data: unknown, headers: Record<string, string> = {}): Promise<RawAnswer> =>
  rawRequest(on.port, {
    method: 'POST',
    path: '/events',
    headers: { ...bearer, ...headers },
    body: JSON.stringify({ channel: 'a', data }),
  });

afterEach(async () => {
  for (const stream of streams.splice(0)) stream.close();
  await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

describe('what probes ask', () => {
  it('is answered without a token', async () => {
    const gateway = await start();
    expect((await get(gateway, '/health')).text).toBe('{"status":"ok"}');
    expect((await get(gateway, '/livez')).json).toEqual({ status: 'ok' });
    expect((await get(gateway, '/readyz')).json).toEqual({ status: 'ready' });
    expect((await get(gateway, '/')).json).toEqual({
      message: 'Sluice is running.',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    });
    for (const path of ['/health', '/livez', '/readyz', '/']) {
      const head = await rawRequest(gateway.port, { method: 'HEAD', path });
      expect([path, head.status, head.text]).toEqual([path, 200, '']);
    }
  });

  it('is "not ready" before Redis is there, and "ready" when it comes', async () => {
    const port = await freePort();
    const gateway = await start({ REDIS_URL: `redis://127.0.0.1:${port}` });
    expect(await get(gateway, '/readyz')).toMatchObject({ status: 503, json: { status: 'not_ready' } });
    expect((await get(gateway, '/readyz', admin)).json).toMatchObject({
      reasons: ['The store has not been loaded yet.'],
      store: [{ up: false, lastError: expect.any(String) }],
    });
    expect([(await get(gateway, '/livez')).status, (await get(gateway, '/health')).status]).toEqual([200, 200]);
    const refused = await publish(gateway, 1);
    expect(refused).toMatchObject({ status: 503, json: { code: 'UNAVAILABLE' } });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    await store(port);
    await eventually(() => isReady(gateway));
    expect((await publish(gateway, 1)).status).toBe(201);
  });

  it('stays "ready" while Redis is away for a moment', async () => {
    const server = await store();
    const gateway = await start({ REDIS_URL: server.url });
    await eventually(() => isReady(gateway));
    const stream = await opened(gateway);
    await server.stop();
    await eventually(() => gateway.gateway.log.health().every(({ up }) => !up));
    expect(await isReady(gateway)).toBe(true);
    expect((await get(gateway, '/readyz', admin)).json).toMatchObject({ store: [{ up: false }] });
    expect(stream.ended || stream.socket.destroyed).toBe(false);
  });
});

describe('stopping', () => {
  const retries = (stream: RawStream): number[] =>
    stream.frames.flatMap((frame) => /^retry: (\d+)$/.exec(frame)?.[1] ?? []).map(Number);

  it('sends the streams away in order, each to come back at another moment', async () => {
    const gateway = await start({ SLUICE_OSSA_RETRY_MS: '4000', SLUICE_SHUTDOWN_GRACE_SECONDS: '20' });
    const some = await Promise.all(Array.from({ length: 5 }, () => opened(gateway)));
    await publish(gateway, 'the last event');
    await eventually(() => some.every((stream) => stream.events.length === 1));
    const begin = performance.now();
    await gateway.stop();
    expect(performance.now() - begin).toBeLessThan(2_000); // nobody is left to wait for
    await eventually(() => some.every(({ ended }) => ended));
    const asked = some.flatMap(retries);
    expect(asked).toHaveLength(5);
    expect(new Set(asked).size).toBeGreaterThan(1);
    for (const ms of asked) {
      expect(ms).toBeGreaterThanOrEqual(4_000);
      expect(ms).toBeLessThan(9_000);
    }
  });

  it('is announced to probes before anything ends', async () => {
    const gateway = await start({ SLUICE_SHUTDOWN_DELAY_SECONDS: '1' });
    const stream = await opened(gateway);
    const stopped = gateway.stop();
    expect(await get(gateway, '/readyz')).toMatchObject({ status: 503, json: { status: 'not_ready' } });
    expect((await get(gateway, '/readyz', admin)).json).toMatchObject({ reasons: ['The gateway is about to stop.'] });
    expect((await get(gateway, '/livez')).status).toBe(200);
    expect((await publish(gateway, 'meanwhile')).status).toBe(201);
    const late = await opened(gateway);
    await eventually(() => stream.events.length === 1);
    expect(stream.ended).toBe(false);
    await stopped;
    await eventually(() => stream.ended && late.ended);
    expect([retries(stream).length, retries(late).length]).toEqual([1, 1]);
    await expect(get(gateway, '/livez')).rejects.toThrow('no answer');
  });

  it('lets a slow reader have what is on its way to it', async () => {
    const gateway = await start({ SLUICE_SHUTDOWN_GRACE_SECONDS: '20' });
    const stream = await opened(gateway);
    stream.socket.pause();
    const large = 'x'.repeat(60_000);
    // Until more is on the way than the kernel takes, and the gateway waits for the reader.
    const isBehind = (): boolean => gateway.gateway.hub.stats().live === 0;
    for (let i = 0; i < 1_000 && !isBehind(); i++) await publish(gateway, large);
    expect(isBehind()).toBe(true);
    const stopped = gateway.stop();
    await sleep(50); // it would have been cut by now
    stream.socket.resume();
    await stopped;
    await eventually(() => stream.ended);
    expect(retries(stream)).toHaveLength(1);
  });

  it('does not wait for connections that are merely kept open', async () => {
    const gateway = await start({ SLUICE_SHUTDOWN_GRACE_SECONDS: '20' });
    const agent = new Agent({ keepAlive: true });
    const status = (): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const asked = request(`${gateway.url}/health`, { agent }, (res) => {
          res.resume().on('end', () => resolve(res.statusCode));
        });
        asked.on('error', reject).end();
      });
    expect(await status()).toBe(200);
    const begin = performance.now();
    await gateway.stop();
    expect(performance.now() - begin).toBeLessThan(2_000);
    agent.destroy();
  });

  it('sends away those too who were still on their way in', async () => {
    const server = await store();
    const gateway = await start({ REDIS_URL: server.url, SLUICE_SHUTDOWN_GRACE_SECONDS: '20' });
    await eventually(() => isReady(gateway));
    const control = new Redis(server.port, '127.0.0.1');
    // The count of open streams is asked of a Redis that does not answer: that takes a moment.
    await control.client('PAUSE', 1_000, 'ALL');
    const stream = new RawStream(gateway.port, '/events?channels=a', bearer);
    streams.push(stream);
    const { registry } = gateway.gateway.metrics;
    await eventually(async () => /_connections 1$/m.test(await registry.getSingleMetricAsString('sluice_connections')));
    expect(stream.head).toBe(''); // counted, and not open yet
    await gateway.stop();
    await eventually(() => stream.ended);
    expect(retries(stream)).toHaveLength(1);
    control.disconnect();
  });
});

describe('metrics', () => {
  /** All samples of a gateway, by name and labels as they are written. */
  const samplesOf = async (on: RunningGateway): Promise<Map<string, number>> => {
    const { text, headers } = await get(on, '/metrics');
    expect(headers['content-type']).toContain('text/plain');
    const pairs = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))] as const);
    return new Map(pairs);
  };

  it('move with what they count', async () => {
    const server = await store();
    const [gateway, fresh] = await Promise.all([start({ REDIS_URL: server.url }), start({ REDIS_URL: server.url })]);
    await eventually(async () => (await isReady(gateway)) && (await isReady(fresh)));
    const before = await samplesOf(fresh);

    const first = await opened(fresh);
    await publish(fresh, 1);
    await publish(gateway, 2);
    await publish(gateway, 3);
    await eventually(() => first.events.length === 3);
    const [id = ''] = first.frames.flatMap((frame) => /^id: (msg-.*)$/m.exec(frame)?.[1] ?? []);
    const fromMirror = await opened(fresh, 'a', { 'Last-Event-ID': id });
    const lost = await opened(fresh, 'a', { 'Last-Event-ID': 'msg-unknown' });
    await eventually(() => fromMirror.events.length === 2 && lost.events.length === 3);
    lost.close();
    await eventually(async () => (await samplesOf(fresh)).get('sluice_connections') === 2);

    const after = await samplesOf(fresh);
    const moved = (name: string): number => (after.get(name) ?? Number.NaN) - (before.get(name) ?? 0);
    const counted: Record<string, number> = {
      sluice_connections: 2,
      sluice_followers_live: 2,
      sluice_events_published_total: 1,
      sluice_publish_seconds_count: 1,
      'sluice_events_delivered_total{source="live"}': 3,
      'sluice_resyncs_total{reason="unknown_id"}': 1,
      'sluice_streams_closed_total{reason="client"}': 1,
      'sluice_store_seconds_count{operation="append"}': 1,
      sluice_gaps_total: 0,
    };
    expect(Object.fromEntries(Object.keys(counted).map((name) => [name, moved(name)]))).toEqual(counted);
    expect(moved('sluice_events_delivered_total{source="mirror"}')).toBeGreaterThanOrEqual(2);
    expect(moved('sluice_store_seconds_count{operation="mark"}')).toBeGreaterThan(0);
    expect(after.get('sluice_store_up{partition="0"}')).toBe(1);
    expect(after.get('sluice_mark_age_seconds{partition="0"}')).toBeGreaterThanOrEqual(0);
    expect(after.get('sluice_mark_age_seconds{partition="0"}')).toBeLessThan(3);
    expect(after.get('nodejs_eventloop_lag_seconds')).toBeGreaterThanOrEqual(0);
    expect(after.get('sluice_publish_seconds_sum')).toBeGreaterThan(0);

    // Where nobody has followed the channel there is no mirror of it yet.
    const fromLog = await opened(gateway, '**', { 'Last-Event-ID': id });
    await eventually(() => fromLog.events.length === 2);
    const other = await samplesOf(gateway);
    expect(other.get('sluice_events_delivered_total{source="log"}')).toBe(2);
    expect(other.get('sluice_store_seconds_count{operation="read"}')).toBeGreaterThan(0);

    await server.stop();
    await eventually(async () => (await samplesOf(fresh)).get('sluice_store_up{partition="0"}') === 0);
  });

  it('name every reason before it has happened, so that the first one is seen as a change', async () => {
    const samples = [...(await samplesOf(await start())).keys()];
    for (const reason of ['client', 'slow', 'token_expired', 'draining']) {
      expect(samples).toContain(`sluice_streams_closed_total{reason="${reason}"}`);
    }
    for (const reason of ['expired', 'epoch_changed', 'unknown_id', 'ahead_of_head', 'gap']) {
      expect(samples).toContain(`sluice_resyncs_total{reason="${reason}"}`);
    }
  });
});

describe('a request id', () => {
  it.each(['7f3a', 'req-1/2:3', 'x'.repeat(128)])('is kept: %s', async (id) => {
    const gateway = await start();
    const answers = await Promise.all([
      get(gateway, '/health', { 'X-Request-Id': id }),
      get(gateway, '/unknown', { 'X-Request-Id': id }),
      get(gateway, '/events?channels=a', { 'X-Request-Id': id }),
      get(gateway, '/events?channels=a', { ...bearer, 'X-Request-Id': id }),
    ]);
    expect(answers.map(({ status, headers }) => [status, headers['x-request-id']])).toEqual([
      [200, id],
      [404, id],
      [401, id],
      [200, id],
    ]);
  });

  it.each(['', 'a b', 'é', 'x'.repeat(129)])('that could do harm is replaced: %j', async (id) => {
    const { headers } = await get(await start(), '/health', { 'X-Request-Id': id });
    expect(headers['x-request-id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });
});

describe('a traceparent', () => {
  const good = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const metadata = async (traceparent: string): Promise<unknown> => {
    const gateway = await start();
    const stream = await opened(gateway);
    expect((await publish(gateway, 1, { traceparent })).status).toBe(201);
    await eventually(() => stream.events.length === 1);
    return JSON.parse(/^data: (.*)$/m.exec(stream.events[0] as string)?.[1] ?? '').metadata;
  };

  it('goes with the event', async () => {
    expect(await metadata(good)).toEqual({
      agentId: 'agent://default/gateway',
      traceparent: good,
      sequence: 1,
      previous: 0,
    });
  });

  it.each([
    ['of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
    ['of a version that cannot be', good.replace(/^00/, 'ff')],
    ['in capital letters', good.toUpperCase()],
    ['with more than it may have', `${good}-00`],
    ['that is something else', 'hello'],
    ['that is empty', ''],
  ])('%s is dropped, and the event is not', async (_what, text) => {
    expect(await metadata(text)).toEqual({ agentId: 'agent://default/gateway', sequence: 1, previous: 0 });
  });
});

describe('CORS', () => {
  const Origin = 'https://app.example';
  const env = { SLUICE_CORS_ORIGINS: `https://other.example,${Origin}` };
  const words = (text: string | undefined): string[] => (text ?? '').split(/\s*,\s*/).filter(Boolean);

  it.each(['/health', '/events?channels=a', '/unknown', '/api/x', '/v1/x', '/tools', '/auth/x'])(
    'lets the pages of a listed origin read %s, errors too',
    async (path) => {
      const { headers } = await get(await start(env), path, { Origin });
      expect(headers['access-control-allow-origin']).toBe(Origin);
      expect(headers['access-control-allow-credentials']).toBe('true');
      expect(words(headers['access-control-expose-headers'])).toEqual([
        'Retry-After',
        'X-Request-Id',
        'X-Sluice-Warning',
      ]);
      expect(words(headers.vary)).toContain('Origin');
    },
  );

  it('lets them follow streams', async () => {
    const stream = await opened(await start(env), 'a', { Origin });
    expect(stream.head).toContain(`Access-Control-Allow-Origin: ${Origin}`);
  });

  it('answers a preflight with the methods and those of the headers that are known', async () => {
    const known = [
      ...['authorization', 'apikey', 'x-api-key', 'x-session-id', 'x-secrets', 'content-type', 'x-requested-with'],
      ...['last-event-id', 'idempotency-key', 'x-correlation-id', 'traceparent'],
      ...['openai-organization', 'X-Stainless-Anything', 'x-stainless-retry-count'],
    ];
    const { status, headers } = await rawRequest((await start(env)).port, {
      method: 'OPTIONS',
      path: '/v1/responses',
      headers: {
        Origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': [...known, 'x-evil', 'x-stainless', 'cookie'].join(','),
      },
    });
    expect(status).toBe(204);
    expect(headers['access-control-allow-origin']).toBe(Origin);
    expect(headers['access-control-allow-credentials']).toBe('true');
    expect(words(headers['access-control-allow-methods'])).toEqual(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);
    expect(words(headers['access-control-allow-headers'])).toEqual(known);
    expect(words(headers.vary)).toContain('Origin');
  });

  it('varies by origin also for those who send none', async () => {
    expect(words((await get(await start(env), '/health')).headers.vary)).toContain('Origin');
  });

  it('is not there while no origin is listed', async () => {
    const { headers } = await get(await start(), '/health', { Origin });
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });
});
