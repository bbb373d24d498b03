import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../streams/logs.ts';
import { TcpProxy } from '../../support/proxy.ts';
import { EverythingServer } from './everything.ts';
import { type Answer, HttpMcpServer, json } from './http-server.ts';
import { Room } from './room.ts';

const events = (response: Parameters<Answer>[0]): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
};
const resultOf = (id: number, value: string): object => ({
  jsonrpc: '2.0',
  id,
  result: { content: [{ type: 'text', text: value }] },
});

jest.setTimeout(30_000);

describe('an MCP server over HTTP', () => {
  let server: HttpMcpServer;
  let room: Room;

  beforeEach(async () => {
    server = await HttpMcpServer.start();
  });
  afterEach(async () => {
    await room.stop();
    await server.stop();
  });

  const open = (more: object = {}, options: ConstructorParameters<typeof Room>[1] = {}): Promise<Room> =>
    Room.open({ s: { url: server.url, ...more } }, options, { TOKEN: 'very-secret' });

  it('gets the headers of the configuration with every request', async () => {
    room = await open({ headers: { Authorization: 'Bearer ${TOKEN}', 'X-Team': 'blue' } });
    await room.call('echo');
    expect(server.headers.length).toBeGreaterThan(3);
    for (const headers of server.headers) {
      expect(headers).toMatchObject({ authorization: 'Bearer very-secret', 'x-team': 'blue' });
    }
  });

  it.each([
    [401, 'it answered with HTTP 401 (not authorized: look at its headers)'],
    [403, 'it answered with HTTP 403 (forbidden: look at its headers)'],
    [404, 'it answered with HTTP 404 (not found: look at its url)'],
    [500, 'it answered with HTTP 500 (internal error)'],
    [418, 'it answered with HTTP 418'],
  ])('is tried again when it answers with %i, without telling any secret', async (status, reason) => {
    server.status = status;
    room = await open({ headers: { Authorization: 'Bearer very-secret' } });
    expect(room.state('s')).toMatchObject({ state: 'failed', lastError: `It could not be started: ${reason}.` });
    await eventually(() => room.state('s').restarts >= 2);
    expect(JSON.stringify([room.states, room.warnings])).not.toContain('very-secret');
    server.status = undefined;
    await eventually(() => room.state('s').state === 'ready');
    expect(await room.text('echo')).toBe('echo');
  });

  it.each(['sse', 'streamable-http'])('is tried again over %s while nobody listens there', async (type) => {
    room = await Room.open({ s: { type, url: 'http://127.77.0.9:2/mcp' } });
    expect(room.state('s')).toMatchObject({
      state: 'failed',
      lastError: 'It could not be started: the connection failed (ECONNREFUSED).',
    });
    await eventually(() => room.state('s').restarts >= 2);
  });

  it('that is not authorized over SSE says so', async () => {
    server.status = 401;
    room = await open({ type: 'sse' });
    expect(room.state('s').lastError).toBe(
      'It could not be started: it answered with HTTP 401 (not authorized: look at its headers).',
    );
  });

  it('whose session is over gets a new one; the call is carried out once', async () => {
    room = await open({}, { refreshMs: 0 });
    await room.call('echo');
    server.sessions.clear();
    const texts = await Promise.all([room.text('echo'), room.text('echo'), room.text('echo')]);
    expect(texts).toEqual(['echo', 'echo', 'echo']);
    expect(server.calls).toEqual(['echo', 'echo', 'echo', 'echo']);
    expect(server.begun).toBe(2);
    expect(room.state('s')).toMatchObject({ state: 'ready', restarts: 1 });
    expect(room.states.map(({ lastError }) => lastError)).toContain('Its session was over.');
  });

  it('is found out when its session ends between calls', async () => {
    room = await open();
    server.sessions.clear();
    await eventually(() => server.begun === 2 && room.state('s').state === 'ready');
    expect(await room.text('echo')).toBe('echo');
  });

  it('that refuses every session is not asked for ever', async () => {
    room = await open({}, { refreshMs: 0, readyMs: 1_000 });
    const { sessions } = server;
    sessions.clear();
    sessions.add = () => sessions;
    expect(await room.error('echo')).toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/The call was not made\.$/),
    });
    expect(server.calls).toEqual([]);
  });

  it.each<[string, Answer, string]>([
    ['before it answers', (response) => response.destroy(), 'Whether the call was carried out is not known.'],
    [
      'in the middle of a JSON answer',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
        response.write('{"jsonrpc"', () => response.destroy());
      },
      'Whether the call was carried out is not known.',
    ],
    [
      'in the middle of a stream',
      (response) => {
        events(response);
        response.write('data: {"jsonrpc"', () => response.destroy());
      },
      'Whether the call was carried out is not known.',
    ],
    [
      'at the end of a stream without the answer',
      (response) => {
        events(response);
        response.end(': nothing\n\n');
      },
      'Whether the call was carried out is not known.',
    ],
    ['with a failure', (response) => response.writeHead(502).end(), 'Whether the call was carried out is not known.'],
    ['with a refusal', (response) => response.writeHead(429).end(), 'The call was not carried out.'],
  ])('that ends a call %s gives one error at once, and the next call works', async (_, answer, outcome) => {
    server.answers.odd = answer;
    room = await open();
    const begin = performance.now();
    const error = await room.error('odd');
    expect(performance.now() - begin).toBeLessThan(5_000);
    expect(error.code).toBe('unavailable');
    expect(error.message).toMatch(/^The MCP server s failed during the call of odd: .+\. /);
    expect(error.message.endsWith(outcome)).toBe(true);
    expect(server.calls).toEqual(['odd']);
    expect(await room.text('echo')).toBe('echo');
    expect(server.calls).toEqual(['odd', 'echo']);
  });

  it('that lets a stream be taken up again loses nothing', async () => {
    server.answers.long = (response, id) => {
      server.rest.set('e-1', `id: e-2\ndata: ${JSON.stringify(resultOf(id, 'the rest'))}\n\n`);
      events(response);
      response.write('retry: 10\nid: e-1\ndata:\n\n', () => response.destroy());
    };
    room = await open();
    expect(await room.text('long')).toBe('the rest');
    expect(server.calls).toEqual(['long']);
    expect(room.state('s').restarts).toBe(0);
  });

  it('hears of a cancel, and its stream is closed', async () => {
    let closed = false;
    server.answers.long = (response) => {
      response.on('close', () => {
        closed = true;
      });
      events(response);
      response.write(': wait\n\n');
    };
    room = await open();
    const stop = new AbortController();
    const call = room.error('long', {}, { signal: stop.signal });
    await eventually(() => server.calls.includes('long'));
    stop.abort();
    expect(await call).toMatchObject({ code: 'cancelled' });
    await eventually(() => server.notified.includes('notifications/cancelled') && closed);
    expect(await room.text('echo')).toBe('echo');
    expect(room.state('s').restarts).toBe(0);
  });

  it('that cuts one call does not cut the others', async () => {
    let finish: () => void = () => {};
    server.answers.slow = (response, id) => {
      events(response);
      response.write(': wait\n\n');
      finish = () => response.end(`data: ${JSON.stringify(resultOf(id, 'slow'))}\n\n`);
    };
    server.answers.cut = (response) => response.destroy();
    room = await open();
    const slow = room.text('slow');
    await eventually(() => server.calls.includes('slow'));
    expect(await room.error('cut')).toMatchObject({ code: 'unavailable' });
    expect(await room.text('echo')).toBe('echo');
    finish();
    expect(await slow).toBe('slow');
    expect(room.state('s').restarts).toBe(0);
  });

  it('whose connection is refused has not got the call', async () => {
    const proxy = await TcpProxy.start(server.port);
    room = await Room.open({ s: { url: `${proxy.url}/mcp` } }, { refreshMs: 0 });
    await proxy.stop();
    await sleep(200); // the connection that was kept for the next request is seen to be closed
    expect(await room.error('echo')).toMatchObject({
      code: 'unavailable',
      message:
        'The MCP server s failed during the call of echo: the connection failed (ECONNREFUSED). The call was not carried out.',
    });
    expect(server.calls).toEqual([]);
    await eventually(() => room.state('s').state === 'failed');
  });

  it.each<[string, Answer]>([
    ['JSON', (response, id) => json(response, resultOf(id, 'x'.repeat(200_000)))],
    [
      'a stream',
      (response, id) => {
        events(response);
        response.end(`data: ${JSON.stringify(resultOf(id, 'x'.repeat(200_000)))}\n\n`);
      },
    ],
  ])('may answer with only so much %s', async (_, answer) => {
    server.answers.big = answer;
    room = await open({}, { maxResultBytes: 100_000 });
    expect(await room.error('big')).toMatchObject({ code: 'too_large' });
    expect(await room.text('echo')).toBe('echo');
    expect(server.calls).toEqual(['big', 'echo']);
  });

  it('may answer in blocks that nobody knows yet', async () => {
    const content = [
      { type: 'hologram', depth: 3 },
      { type: 'text', text: 'b' },
    ];
    server.answers.odd = (response, id) => json(response, { jsonrpc: '2.0', id, result: { content } });
    server.answers.none = (response, id) => json(response, { jsonrpc: '2.0', id, result: {} });
    room = await open();
    expect(await room.call('odd')).toEqual({
      content: [
        { type: 'text', text: '{"type":"hologram","depth":3}' },
        { type: 'text', text: 'b' },
      ],
      isError: false,
    });
    expect(await room.error('none')).toMatchObject({ code: 'failed' });
    expect(room.state('s').restarts).toBe(0);
  });

  it('is told when it is left', async () => {
    room = await open();
    expect(server.sessions.size).toBe(1);
    await room.servers.close();
    expect(server.sessions.size).toBe(0);
  });
});

it('the reference server over SSE may answer with only so much', async () => {
  const server = await EverythingServer.start('sse');
  const room = await Room.open({ s: { type: 'sse', url: server.url } }, { maxResultBytes: 100_000, refreshMs: 0 });
  expect(await room.error('echo', { message: 'x'.repeat(200_000) })).toMatchObject({ code: 'too_large' });
  expect(await room.text('echo', { message: 'x'.repeat(50_000) })).toHaveLength(50_006);
  await room.stop();
  await server.stop();
});

it('the reference server over SSE behind a line that breaks gives one error, and is there again', async () => {
  const server = await EverythingServer.start('sse');
  const room = await Room.open({ s: { type: 'sse', url: server.url } });
  let began: () => void = () => {};
  const begun = new Promise<void>((resolve) => {
    began = resolve;
  });
  const call = room.error('trigger-long-running-operation', { duration: 60, steps: 600 }, { progress: began });
  await begun;
  server.line.cut();
  expect(await call).toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('Whether the call was carried out is not known.'),
  });
  expect(await room.text('echo', { message: 'again' })).toBe('Echo: again');
  expect(room.state('s').restarts).toBe(1);
  await room.stop();
  await server.stop();
});
