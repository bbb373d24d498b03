import { setTimeout as sleep } from 'node:timers/promises';
import { EventSource } from 'eventsource';
import { eventually } from '../streams/logs.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const authorization = { Authorization: `Bearer ${tokenFor()}` };

const post = (gateway: RunningGateway, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${gateway.url}/events`, {
    method: 'POST',
    headers: { ...authorization, ...headers },
    body: JSON.stringify(body),
  });

const follow = async (gateway: RunningGateway, channels: string, lastId?: string): Promise<RawStream> => {
  const headers = { ...authorization, ...(lastId !== undefined && { 'Last-Event-ID': lastId }) };
  const stream = new RawStream(gateway.port, `/events?channels=${channels}`, headers);
  await eventually(() => stream.frames.length > 0);
  return stream;
};

describe('two gateways on one Redis', () => {
  let redis: RunningRedis;
  let gateways: [RunningGateway, RunningGateway];

  beforeAll(async () => {
    redis = await startRedis();
    const env = { REDIS_URL: redis.url, SLUICE_BUFFER_EVENTS: '1000', SLUICE_OSSA_HEARTBEAT_SECONDS: '3600' };
    gateways = [await startGateway(env), await startGateway(env)];
    await eventually(() => gateways.every(({ gateway }) => gateway.hub.loaded));
  });
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await redis.stop();
  });

  it('send byte for byte the same frames, live and after a drop at any event, on either of them', async () => {
    const [one, two] = gateways;
    const whole = [await follow(one, 'a,b'), await follow(two, 'a,b')];
    let cut = await follow(one, 'b,a');
    const pieces: string[] = [];
    const types = ['message', 'status', 'capability_response', 'error'];
    for (let i = 0; i < 60; i++) {
      const channel = i % 3 === 0 ? 'a' : 'b';
      const answer = await post(gateways[i % 2] as RunningGateway, {
        channel,
        type: types[i % 4],
        data: { i, text: 'ü\n' },
        correlationId: `c-${i}`,
      });
      expect(answer.status).toBe(201);
      if (i % 2 === 0) continue;
      // Sometimes it has seen both events of this round, sometimes only the first, sometimes none.
      if (i % 6 === 1) await eventually(() => cut.events.length > 0);
      cut.close();
      pieces.push(...cut.events);
      cut = await follow(gateways[(i >> 1) % 2] as RunningGateway, i % 4 === 1 ? 'a,b' : 'b,a', cut.lastId);
    }
    await eventually(() => pieces.length + cut.events.length === 60);
    await eventually(() => whole.every((stream) => stream.events.length === 60));
    expect(whole[1]?.events).toEqual(whole[0]?.events);
    expect([...pieces, ...cut.events]).toEqual(whole[0]?.events);
    expect(whole[0]?.body).not.toContain('resync');
    for (const stream of [...whole, cut]) stream.close();
  });

  it('publish once for an Idempotency-Key, whichever of them is asked', async () => {
    const [one, two] = gateways;
    const key = { 'Idempotency-Key': 'order-17' };
    const answers = await Promise.all(
      [one, two, one, two].map((gateway) => post(gateway, { channel: 'once', data: 1 }, key)),
    );
    const bodies = await Promise.all(answers.map((answer) => answer.json()));
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect((await post(two, { channel: 'once', data: 2 }, key)).status).toBe(409);
    const stream = await follow(one, 'once', 'unknown');
    await eventually(() => stream.events.length > 0);
    await sleep(50);
    expect(stream.events).toHaveLength(1);
    stream.close();
  });

  it('stay open while Redis is away, beat, accept new streams, refuse to publish, and go on when it is back', async () => {
    const beating = await startGateway({ REDIS_URL: redis.url, SLUICE_OSSA_HEARTBEAT_SECONDS: '1' });
    await eventually(() => beating.gateway.hub.loaded);
    const open = await follow(beating, 'outage');
    expect((await post(beating, { channel: 'outage', data: 'before' })).status).toBe(201);
    await eventually(() => open.events.length === 1);
    redis.child.kill('SIGSTOP');
    try {
      // The first one finds out: it waits for its deadline.
      const first = await post(beating, { channel: 'outage', data: 'lost' });
      expect(first.status).toBe(503);
      expect(first.headers.get('retry-after')).toBe('1');
      expect(await first.json()).toMatchObject({ code: 'UNAVAILABLE' });
      await eventually(() => !beating.gateway.log.health()[0]?.up);
      const begin = performance.now();
      expect((await post(beating, { channel: 'outage', data: 'refused' })).status).toBe(503);
      expect(performance.now() - begin).toBeLessThan(500);

      const states: number[] = [];
      const seen: string[] = [];
      const late = new EventSource(
        `${beating.url}/events?channels=outage&token=${tokenFor()}&lastEventId=${open.lastId}`,
      );
      late.addEventListener('open', () => states.push(late.readyState));
      late.addEventListener('message', (event) => seen.push(event.data as string));
      await eventually(() => states.length === 1);
      const beats = open.body.split(': heartbeat').length;
      await eventually(() => open.body.split(': heartbeat').length > beats, 5_000);
      expect(open.socket.closed).toBe(false);
      expect((await fetch(`${beating.url}/readyz`)).status).toBe(200); // for a minute waiting is the better service
      redis.child.kill('SIGCONT');
      await eventually(() => beating.gateway.log.health().every(({ up }) => up));
      const other = gateways[0];
      await eventually(async () => (await post(other, { channel: 'outage', data: 'after' })).status === 201);
      await eventually(() => open.events.length === 2);
      await eventually(() => seen.some((data) => data.includes('"data":"after"')));
      expect(open.body).not.toContain('resync');
      expect(open.body).not.toMatch(/"data":"(lost|refused)"/);
      expect(seen.some((data) => data.includes('"resumed":true'))).toBe(true);
      late.close();
    } finally {
      redis.child.kill('SIGCONT');
      open.close();
      await beating.stop();
    }
  }, 30_000);
});

describe('several gateways in one process', () => {
  it('have nothing in common', async () => {
    const gateways = await Promise.all([startGateway(), startGateway({ SLUICE_NAMESPACE: 'other' }), startGateway()]);
    const streams = await Promise.all(gateways.map((gateway) => follow(gateway, 'c')));
    await post(gateways[1], { channel: 'c', data: 'only here' });
    await eventually(() => streams[1]?.events.length === 1);
    expect(streams[1]?.body).toContain('agent://other/gateway');
    expect(streams.map((stream) => stream.events.length)).toEqual([0, 1, 0]);
    const metrics = await Promise.all(gateways.map(({ gateway }) => gateway.metrics.registry.metrics()));
    expect(metrics.map((text) => /sluice_events_published_total (\d)/.exec(text)?.[1])).toEqual(['0', '1', '0']);
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    for (const stream of streams) await stream.closed;
  });
});
