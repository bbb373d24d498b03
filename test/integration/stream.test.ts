import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../streams/logs.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { RawStream } from '../support/raw-stream.ts';

let gateway: RunningGateway;
const token = tokenFor();
const authorization = { Authorization: `Bearer ${token}` };

beforeAll(async () => {
  gateway = await startGateway({ SLUICE_OSSA_HEARTBEAT_SECONDS: '1', SLUICE_BUFFER_EVENTS: '5000' });
});
afterAll(() => gateway.stop());

const publish = async (...data: unknown[]): Promise<string[]> => {
  const answer = await fetch(`${gateway.url}/events`, {
    method: 'POST',
    headers: authorization,
    body: JSON.stringify(data.map((value) => ({ channel: 'c', data: value }))),
  });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { ids: string[] }).ids;
};

const openStreams = async (): Promise<number> => gateway.gateway.hub.stats().followers;

const follow = async (headers: Record<string, string> = {}, version = '1.1'): Promise<RawStream> => {
  const stream = new RawStream(gateway.port, '/events?channels=c', { ...authorization, ...headers }, version);
  await eventually(() => stream.frames.length > 0);
  return stream;
};

describe('a stream', () => {
  it('has the headers that keep proxies and browsers from holding it back', async () => {
    const stream = await follow({ 'Accept-Encoding': 'gzip, br' });
    expect(stream.head).toMatch(/^HTTP\/1\.1 200 OK/);
    for (const line of [
      /^content-type: text\/event-stream/im,
      /^cache-control: no-cache, no-store, must-revalidate, no-transform\r$/im,
      /^x-accel-buffering: no\r$/im,
      /^connection: keep-alive\r$/im,
    ]) {
      expect(`${stream.head}\r\n`).toMatch(line);
    }
    expect(stream.head).not.toMatch(/content-encoding|content-length|etag/i);
    stream.close();
  });

  it('begins with retry, an id and what it follows, in a frame that has no name', async () => {
    const stream = await follow();
    const [first = ''] = stream.frames;
    expect(first).toMatch(/^retry: 3000\nid: pos-[0-9a-f-]{36}\ndata: \{.*\}$/);
    expect(JSON.parse(first.slice(first.indexOf('{')))).toMatchObject({
      type: 'connected',
      id: /id: (.*)/.exec(first)?.[1],
      payload: { channels: ['c'], resumed: false },
      metadata: { agentId: 'agent://default/gateway' },
    });
    stream.close();
  });

  it('carries events as the schema says: one line of data with type, id, timestamp, payload and metadata', async () => {
    const stream = await follow();
    const [id = ''] = await publish({ text: 'line\nbreak \u2028 ünï 🌊' });
    await eventually(() => stream.events.length > 0);
    const [frame = ''] = stream.events;
    expect(frame.split('\n')).toHaveLength(3);
    expect(frame).toMatch(new RegExp(`^event: message\nid: ${id}\ndata: `));
    expect(JSON.parse(frame.split('data: ')[1] ?? '')).toEqual({
      type: 'message',
      id,
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      payload: { channel: 'c', data: { text: 'line\nbreak \u2028 ünï 🌊' } },
      metadata: { agentId: 'agent://default/gateway', sequence: expect.any(Number), previous: expect.any(Number) },
    });
    stream.close();
  });

  it('resumes by header or by parameter, and the header wins', async () => {
    const [one, two] = (await publish('1', '2', '3')) as [string, string];
    const seen = async (path: string, headers: Record<string, string>): Promise<unknown[]> => {
      const stream = new RawStream(gateway.port, path, { ...authorization, ...headers });
      await eventually(() => stream.events.some((frame) => frame.includes('"data":"3"')));
      stream.close();
      return stream.events.map((frame) => JSON.parse(frame.split('data: ')[1] ?? '').payload.data);
    };
    expect(await seen('/events?channels=c', { 'Last-Event-ID': one })).toEqual(['2', '3']);
    expect(await seen(`/events?channels=c&lastEventId=${one}`, {})).toEqual(['2', '3']);
    expect(await seen(`/events?channels=c&lastEventId=${one}`, { 'Last-Event-ID': two })).toEqual(['3']);
  });

  it('is told in the stream that its id is unknown, without an id that would hide it', async () => {
    const stream = new RawStream(gateway.port, '/events?channels=c', { ...authorization, 'Last-Event-ID': 'nonsense' });
    await eventually(() => stream.frames.length >= 2);
    expect(stream.frames[0]).not.toMatch(/^id:/m);
    expect(stream.frames[1]).toMatch(/^event: resync\ndata: /);
    expect(JSON.parse(stream.frames[1]?.split('data: ')[1] ?? '')).toMatchObject({
      type: 'resync',
      payload: { reason: 'unknown_id', channels: ['c'], lastEventId: 'nonsense' },
    });
    stream.close();
  });

  it('beats while it is quiet, as a comment with the time', async () => {
    const stream = await follow();
    await eventually(() => /\n: heartbeat - \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z\n\n/.test(stream.body), 4_000);
    stream.close();
  });

  it('works in HTTP/1.0: no chunks, and the end of the connection is its end', async () => {
    const stream = await follow({}, '1.0');
    await publish('old');
    await eventually(() => stream.events.length > 0);
    expect(stream.head).not.toMatch(/transfer-encoding/i);
    expect(stream.body).toMatch(/^retry: 3000\nid: /);
    stream.close();
  });

  it('ends at once for HEAD, with the headers of a stream and nothing left open', async () => {
    await eventually(async () => (await openStreams()) === 0);
    const answer = await fetch(`${gateway.url}/events?channels=c`, { method: 'HEAD', headers: authorization });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(await answer.text()).toBe('');
    expect(await openStreams()).toBe(0);
  });

  it('waits for its turn when it was pipelined behind another request', async () => {
    const socket = connect(gateway.port, '127.0.0.1');
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes.toString();
    });
    const request = (path: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    socket.write(request('/health') + request('/readyz') + request('/events?channels=c'));
    await eventually(() => text.includes('"connected"'));
    await publish('piped');
    await eventually(() => text.includes('"data":"piped"'));
    const order = [text.indexOf('{"status":"ok"}'), text.indexOf('{"status":"ready"'), text.indexOf('"connected"')];
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order[0]).toBeGreaterThan(0);
    socket.destroy();
  });

  it('leaves nothing behind when its client goes, at whatever moment', async () => {
    for (let i = 0; i < 50; i++) {
      const stream = new RawStream(gateway.port, '/events?channels=c', authorization);
      if (i % 3 === 0) await sleep(i % 7);
      if (i % 3 === 1) await new Promise((resolve) => setImmediate(resolve));
      stream.close();
    }
    await eventually(async () => (await openStreams()) === 0);
  });

  it('gives everything of one turn in one write', async () => {
    const stream = await follow();
    const sizes: number[] = [];
    stream.socket.on('data', (bytes) => sizes.push(bytes.length));
    await publish(...Array.from({ length: 200 }, (_, i) => `many ${i}`));
    await eventually(() => stream.events.length === 200);
    expect(sizes.length).toBeLessThan(10);
    stream.close();
  });
});

describe('a reader that does not read', () => {
  it('is cut after a while, costs no memory, and keeps nobody waiting', async () => {
    const slow = await startGateway({
      SLUICE_LIMITS_SLOW_READER_SECONDS: '2',
      SLUICE_MAX_EVENTS_PER_SECOND: '0',
      SLUICE_MAX_PUBLISH_PER_SECOND: '0',
      SLUICE_BUFFER_EVENTS: '50',
    });
    const [idle, busy] = [0, 1].map(() => new RawStream(slow.port, '/events?channels=c', authorization));
    await eventually(() => [idle, busy].every((stream) => (stream?.frames.length ?? 0) > 0));
    idle?.socket.pause();
    const post = (): Promise<unknown> =>
      fetch(`${slow.url}/events`, {
        method: 'POST',
        headers: authorization,
        body: JSON.stringify(Array.from({ length: 20 }, () => ({ channel: 'c', data: 'x'.repeat(30_000) }))),
      });
    const metric = async (): Promise<string> =>
      (await slow.gateway.metrics.registry.getSingleMetricAsString('sluice_streams_closed_total')) ?? '';
    let sent = 0;
    await eventually(async () => {
      await post();
      sent += 20;
      return (await metric()).includes('reason="slow"} 1');
    }, 15_000);
    expect(slow.gateway.hub.stats().followers).toBe(1);
    await eventually(() => (busy?.events.length ?? 0) === sent);
    expect(busy?.body).not.toContain('event: resync');
    await slow.stop();
  }, 30_000);
});
