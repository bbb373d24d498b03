import { eventually } from '../streams/logs.ts';
import { Follower } from '../support/follower.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { type RunningNginx, startNginx } from '../support/nginx.ts';
import { Counter, post } from '../support/publisher.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const AUTHORIZATION = { Authorization: `Bearer ${tokenFor()}` };

const dataOf = (frames: readonly string[]): number[] =>
  frames.map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '').payload.data as number);

const backendOf = ({ head }: RawStream): string => /^X-Backend: (.*)$/im.exec(head)?.[1]?.trim() ?? '';

describe('two gateways on one Redis behind nginx', () => {
  let redis: RunningRedis;
  let gateways: RunningGateway[];
  let nginx: RunningNginx;

  beforeAll(async () => {
    redis = await startRedis();
    const env = { REDIS_URL: redis.url, SLUICE_OSSA_RETRY_MS: '30', SLUICE_BUFFER_EVENTS: '5000' };
    gateways = await Promise.all([startGateway(env), startGateway(env)]);
    nginx = await startNginx(gateways.map(({ port }) => port));
    for (const { url } of gateways) await eventually(async () => (await fetch(`${url}/readyz`)).ok);
  });

  afterAll(async () => {
    await nginx.stop();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await redis.stop();
  });

  const follow = async (
    channel: string,
    headers: Readonly<Record<string, string>> = {},
    prefix = '',
  ): Promise<RawStream> => {
    const path = `${prefix}/events?channels=${channel}`;
    const stream = new RawStream(nginx.port, path, { ...AUTHORIZATION, ...headers });
    await eventually(() => stream.frames.length > 0, 1_000);
    return stream;
  };

  it.each([
    { version: '1.1', prefix: '' },
    { version: '1.0', prefix: '/plain' },
  ])('passes every event on as it comes over HTTP/$version, without being told not to buffer', async ({ prefix }) => {
    const streams = [await follow('unbuffered', {}, prefix), await follow('unbuffered', {}, prefix)];
    expect(new Set(streams.map(backendOf)).size).toBe(2);
    for (const count of [1, 2, 3]) {
      await post(nginx.url, { channel: 'unbuffered', data: count });
      await eventually(() => streams.every(({ events }) => events.length === count), 1_000);
    }
    for (const stream of streams) stream.close();
  });

  it('sends the same bytes from either gateway, and each resumes what the other has begun', async () => {
    const whole = await follow('either');
    const counter = new Counter(() => nginx.url, 'either');
    const parts: string[] = [];
    const backends: string[] = [];
    let lastId: string | undefined;
    for (let i = 0; i < 6; i++) {
      const stream = await follow('either', lastId === undefined ? {} : { 'Last-Event-ID': lastId });
      await eventually(() => stream.events.length >= 5);
      stream.close();
      parts.push(...stream.events);
      backends.push(backendOf(stream));
      lastId = stream.lastId;
      await post(nginx.url, { channel: 'elsewhere', data: i }); // so that the turns do not only alternate
    }
    await counter.stop();
    expect(new Set(backends).size).toBe(2);
    await eventually(() => whole.events.length >= counter.published);
    expect(dataOf(whole.events)).toEqual(counter.all);
    // The first one began a little later than the counter.
    const from = whole.events.indexOf(parts[0] as string);
    expect(from).toBeGreaterThanOrEqual(0);
    expect(parts).toEqual(whole.events.slice(from, from + parts.length));
    whole.close();
  });

  it('brings the clients of a gateway that is stopped back on the other, with every event', async () => {
    const url = `${nginx.url}/events?channels=drained&token=${tokenFor()}`;
    const clients = await Promise.all(Array.from({ length: 6 }, () => Follower.open(url)));
    const [stopped, left] = gateways as [RunningGateway, RunningGateway];
    const counter = new Counter(() => left.url, 'drained');
    await eventually(() => clients.every(({ seen }) => seen.length > 5));
    await stopped.stop();
    // They come back at moments of their own, within five seconds.
    await eventually(() => clients.filter(({ resumed }) => resumed.length === 2).length === 3);
    await counter.stop();
    await eventually(() => clients.every(({ seen }) => seen.length >= counter.published));
    await Promise.all(clients.map((client) => client.stop()));

    for (const { seen } of clients) expect(seen).toEqual(counter.all);
    const histories = clients.map(({ resumed }) => resumed.join());
    expect(histories.toSorted()).toEqual([...Array(3).fill('false'), ...Array(3).fill('false,true')]);
    const backends = [await follow('drained'), await follow('drained')].map((stream) => {
      stream.close();
      return backendOf(stream);
    });
    expect(backends.every((backend) => backend.endsWith(`127.0.0.1:${left.port}`))).toBe(true);
  }, 20_000);
});
