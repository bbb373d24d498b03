import { eventually } from '../streams/logs.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { Random } from '../support/random.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

interface Polled {
  readonly events: { id: string; payload: { channel: string; data: number } }[];
  readonly cursor: string;
  readonly resync?: { reason: string; channels: string[]; lastEventId: string | null }[];
}

const headers = { Authorization: `Bearer ${tokenFor()}`, Accept: 'application/json' };

const ask = async (gateway: RunningGateway, query: string, more: Record<string, string> = {}): Promise<Polled> => {
  const answer = await fetch(`${gateway.url}/events?${query}`, { headers: { ...headers, ...more } });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toContain('application/json');
  expect(answer.headers.get('cache-control')).toBe('no-store');
  return (await answer.json()) as Polled;
};

const publish = async (gateway: RunningGateway, channel: string, data: unknown): Promise<string> => {
  const answer = await fetch(`${gateway.url}/events`, {
    method: 'POST',
    headers: { Authorization: headers.Authorization },
    body: JSON.stringify({ channel, data }),
  });
  return ((await answer.json()) as { id: string }).id;
};

describe.each(['memory', 'redis'])('long-polling on %s', (store) => {
  let redis: RunningRedis | undefined;
  let gateways: RunningGateway[];
  const env = { SLUICE_BUFFER_EVENTS: '50', SLUICE_MAX_CONNECTIONS_PER_PRINCIPAL: '0' };

  beforeAll(async () => {
    redis = store === 'redis' ? await startRedis() : undefined;
    const shared = { ...env, ...(redis && { REDIS_URL: redis.url }) };
    gateways = redis ? [await startGateway(shared), await startGateway(shared)] : [await startGateway(shared)];
    await eventually(() => gateways.every(({ gateway }) => gateway.hub.loaded));
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await redis?.stop();
  });
  const first = (): RunningGateway => gateways[0] as RunningGateway;

  it('waits for an event, and goes on behind it', async () => {
    const begun = await ask(first(), 'channels=poll.a&wait=0');
    expect(begun.events).toEqual([]);
    const waiting = ask(first(), `channels=poll.a&cursor=${begun.cursor}`);
    const id = await publish(first(), 'poll.a', 1);
    const { events, cursor, resync } = await waiting;
    expect(events).toMatchObject([{ id, type: 'message', payload: { channel: 'poll.a', data: 1 } }]);
    expect(resync).toBeUndefined();
    expect(cursor).toBe(`pos-${id.slice(4)}`);
    expect(await ask(first(), `channels=poll.a&cursor=${cursor}&wait=0`)).toEqual({
      events: [],
      cursor: expect.any(String),
    });
  });

  it('takes any id for a cursor; the header wins', async () => {
    const one = await publish(first(), 'poll.b', 1);
    const two = await publish(first(), 'poll.b', 2);
    const polled = async (query: string, more = {}): Promise<number[]> =>
      (await ask(first(), `channels=poll.b&wait=1&${query}`, more)).events.map(({ payload }) => payload.data);
    expect(await polled(`cursor=${one}`)).toEqual([2]);
    expect(await polled(`lastEventId=${one}`)).toEqual([2]);
    expect(await polled(`cursor=${two}`, { 'Last-Event-ID': one })).toEqual([2]);
  });

  it.each([
    ['nonsense', 'unknown_id'],
    ['msg-00000000-0000-7000-8000-000000000000', 'epoch_changed'],
  ])('says that %s is no position, once, and gives what is kept', async (cursor, reason) => {
    await publish(first(), 'poll.c', 1);
    const polled = await ask(first(), `channels=poll.c&cursor=${cursor}`);
    expect(polled.resync).toEqual([{ reason, channels: ['poll.c'], lastEventId: cursor }]);
    expect(polled.events.length).toBeGreaterThan(0);
    const quiet = await ask(first(), `channels=poll.never&cursor=${cursor}`);
    expect(quiet).toMatchObject({ events: [], resync: [{ reason, channels: ['poll.never'] }] });
    const next = await ask(first(), `channels=poll.never&wait=0&cursor=${quiet.cursor}`);
    expect(next.resync).toBeUndefined();
  });

  it('says that events have left the buffer', async () => {
    const { cursor } = await ask(first(), 'channels=poll.d&wait=0');
    for (let i = 0; i < 60; i++) await publish(first(), 'poll.d', i);
    const polled = await ask(first(), `channels=poll.d&cursor=${cursor}`);
    expect(polled.resync).toMatchObject([{ reason: 'expired', channels: ['poll.d'] }]);
    expect(polled.events.map(({ payload }) => payload.data)).toEqual(Array.from({ length: 50 }, (_, i) => i + 10));
  });

  it('refuses what a stream refuses', async () => {
    const status = async (query: string, token = tokenFor({ subscribe: ['poll.*'] })): Promise<number> =>
      (await fetch(`${first().url}/events?${query}`, { headers: { ...headers, Authorization: `Bearer ${token}` } }))
        .status;
    expect(await status('channels=other')).toBe(403);
    expect(await status('channels=a..b')).toBe(400);
    expect(await status('channels=poll.a&wait=soon')).toBe(400);
    expect(await status('channels=poll.a&wait=0', 'nonsense')).toBe(401);
  });

  it('gives a stream to who lists both', async () => {
    const answer = await fetch(`${first().url}/events?channels=poll.a`, {
      headers: { ...headers, Accept: 'text/event-stream, application/json' },
    });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    await answer.body?.cancel();
  });

  it('gives the same events in the same order as a stream, however often both are dropped', async () => {
    const random = new Random(20_261_118);
    const channels = ['same.a', 'same.b', 'same.c'];
    const query = 'channels=same.a,same.%2A';
    const start = (await ask(first(), `${query}&wait=0`)).cursor;
    const TOTAL = 400;
    const publishing = (async () => {
      for (let i = 0; i < TOTAL; i++) {
        await publish(random.pick(gateways), random.pick(channels), i);
        if (random.chance(0.1)) await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    const streaming = (async () => {
      const ids: string[] = [];
      for (let cursor = start; ids.length < TOTAL; ) {
        const stream = new RawStream(random.pick(gateways).port, `/events?${query}&token=${tokenFor()}`, {
          'Last-Event-ID': cursor,
        });
        const enough = 1 + random.below(40);
        await eventually(() => stream.events.length >= Math.min(enough, TOTAL - ids.length));
        stream.close();
        expect(stream.body).not.toContain('event: resync');
        ids.push(...stream.events.map((frame) => /"id":"([^"]+)"/.exec(frame)?.[1] as string));
        cursor = stream.lastId as string;
      }
      return ids;
    })();
    const polling = (async () => {
      const ids: string[] = [];
      for (let cursor = start; ids.length < TOTAL; ) {
        const stop = new AbortController();
        const gateway = random.pick(gateways);
        if (random.chance(0.3)) setTimeout(() => stop.abort(), random.below(10));
        try {
          const answer = await fetch(`${gateway.url}/events?${query}&cursor=${cursor}`, {
            headers,
            signal: stop.signal,
          });
          const polled = (await answer.json()) as Polled;
          expect(polled.resync).toBeUndefined();
          ids.push(...polled.events.map(({ id }) => id));
          cursor = polled.cursor;
        } catch (error) {
          if (!stop.signal.aborted) throw error;
        }
      }
      return ids;
    })();
    const [, streamed, polled] = await Promise.all([publishing, streaming, polling]);
    expect(streamed).toHaveLength(TOTAL);
    expect(new Set(streamed).size).toBe(TOTAL);
    expect(polled).toEqual(streamed);
  });
});

it('answers a waiting poll at once when the gateway stops', async () => {
  const gateway = await startGateway();
  const waiting = ask(gateway, 'channels=poll.a');
  await eventually(() => gateway.gateway.hub.stats().followers === 1);
  await gateway.stop();
  expect((await waiting).events).toEqual([]);
});
