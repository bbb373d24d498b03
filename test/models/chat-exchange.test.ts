import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { wholeAnswer } from '../../src/models/answer.ts';
import { ChatBackend, type ChatBackendOptions } from '../../src/models/chat-backend.ts';
import { eventually } from '../streams/logs.ts';
import { DONE, delta, Reply, ScriptedBackend, saying } from '../support/model-backend.ts';
import { ask, collect } from './collect.ts';

/** So soon a backend knows that nobody listens. */
const WITHIN_MS = 100;

const clients: ChatBackend[] = [];
const clientOf = (baseUrl: string, options: Partial<ChatBackendOptions> = {}): ChatBackend => {
  const client = new ChatBackend({ baseUrl, retry: { firstDelayMs: 1 }, ...options });
  clients.push(client);
  return client;
};

afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

/** A server that accepts and is silent, so that TLS never comes about. */
const silent = async (): Promise<{ server: Server; accepted: Promise<Reply>; port: number }> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = new Promise<Reply>((resolve) => {
    server.once('connection', (socket) => {
      socket.on('error', () => {});
      socket.resume();
      resolve(new Reply({ method: '', path: '', headers: {}, body: {} }, socket));
    });
  });
  return { server, accepted, port: (server.address() as AddressInfo).port };
};

const begin = (reply: Reply, body: string, status = 200): Reply => {
  reply.head(status);
  reply.chunk(body);
  return reply;
};

/** A backend that gets so far and then waits. */
const reaching = async (
  step: (reply: Reply) => unknown,
): Promise<{ server: ScriptedBackend; there: Promise<Reply> }> => {
  let arrived: (reply: Reply) => void = () => {};
  const there = new Promise<Reply>((resolve) => {
    arrived = resolve;
  });
  const server = await ScriptedBackend.start(async (reply) => {
    await step(reply);
    arrived(reply);
  });
  return { server, there };
};

describe('a cancel', () => {
  it('closes a connection that is still being made', async () => {
    const { server, accepted, port } = await silent();
    const stop = new AbortController();
    const done = collect(clientOf(`https://127.0.0.1:${port}`).stream(ask('hello'), { signal: stop.signal }));
    const { closed } = await accepted;
    await sleep(10);
    const begun = performance.now();
    stop.abort();
    expect((await done).error).toMatchObject({ code: 'cancelled', retryable: false });
    expect((await closed) - begun).toBeLessThan(WITHIN_MS);
    server.close();
  });

  it.each<[string, (reply: Reply) => unknown, number]>([
    ['before the first byte', () => {}, 0],
    ['after the head', (reply) => reply.head(), 0],
    ['in the middle of an answer', (reply) => begin(reply, delta({ content: 'one' })), 2],
    ['in the middle of a line', (reply) => begin(reply, 'data: {"choi'), 0],
    ['while an error is being read', (reply) => begin(reply, '{"err', 500), 0],
  ])('closes the connection %s', async (_, step, events) => {
    const { server, there } = await reaching(step);
    const stop = new AbortController();
    const done = collect(clientOf(server.url).stream(ask('hello'), { signal: stop.signal }));
    const { closed } = await there;
    await sleep(20);
    const begun = performance.now();
    stop.abort();
    expect(await done).toMatchObject({ error: { code: 'cancelled' }, events: { length: events } });
    expect((await closed) - begun).toBeLessThan(WITHIN_MS);
    expect(server.requests).toHaveLength(1);
  });

  it('closes the connection of an answer that nobody reads', async () => {
    const { server, there } = await reaching((reply) => {
      reply.head();
      for (let i = 0; i < 10_000; i++) reply.chunk(delta({ content: 'x'.repeat(500) }));
    });
    const stop = new AbortController();
    const events = clientOf(server.url).stream(ask('hello'), { signal: stop.signal });
    await events.next();
    const { closed } = await there;
    await sleep(100);
    const begun = performance.now();
    stop.abort();
    expect((await closed) - begun).toBeLessThan(WITHIN_MS);
    await expect(events.next()).rejects.toMatchObject({ code: 'cancelled' }); // before the hundreds that were waiting
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  it('ends the wait for a repetition', async () => {
    const server = await ScriptedBackend.start((reply) => reply.json(503, {}));
    const stop = new AbortController();
    const waiting = new Promise<void>((resolve) => {
      const client = clientOf(server.url, {
        retry: { firstDelayMs: 60_000, longestDelayMs: 60_000 },
        retried: () => resolve(),
      });
      void collect(client.stream(ask('hello'), { signal: stop.signal })).then(({ error }) => {
        expect(error?.code).toBe('cancelled');
        resolve();
      });
    });
    await waiting;
    stop.abort();
    await sleep(20);
    expect(server.requests).toHaveLength(1);
  });

  it('that came before the request leaves the backend alone', async () => {
    const server = await ScriptedBackend.start((reply) => reply.stream(saying('hi')));
    const { error } = await collect(clientOf(server.url).stream(ask('hello'), { signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: 'cancelled' });
    expect(server.accepted).toBe(0);
  });

  it('is also to leave the loop', async () => {
    const { server, there } = await reaching((reply) => {
      reply.head();
      reply.chunk(delta({ content: 'one' }) + delta({ content: 'two' }));
    });
    for await (const event of clientOf(server.url).stream(ask('hello'))) if (event.type === 'text') break;
    const begun = performance.now();
    expect((await (await there).closed) - begun).toBeLessThan(WITHIN_MS);
  });

  it('after the end does nothing, and leaves no listener behind', async () => {
    const server = await ScriptedBackend.start((reply) => reply.stream(saying('hi')));
    const stop = new AbortController();
    let listeners = 0;
    const { signal } = stop;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    const client = clientOf(server.url);
    await wholeAnswer(client.stream(ask('hello'), { signal }));
    expect(listeners).toBe(0);
    stop.abort();
    await wholeAnswer(client.stream(ask('hello')));
    expect(server.accepted).toBe(1);
  });
});

describe('a time limit', () => {
  it('is set to connecting', async () => {
    const { server, accepted, port } = await silent();
    const client = clientOf(`https://127.0.0.1:${port}`, { connectMs: 50, retry: { retries: 0 } });
    const { error } = await collect(client.stream(ask('hello')));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('ETIMEDOUT') });
    await (await accepted).closed;
    server.close();
  });

  it('is set to the first byte; who was that slow is not asked again', async () => {
    const { server, there } = await reaching(() => {});
    const { error } = await collect(clientOf(server.url, { firstByteMs: 50 }).stream(ask('hello')));
    expect(error).toMatchObject({ code: 'timeout', retryable: true });
    await (await there).closed;
    expect(server.requests).toHaveLength(1);
  });

  it.each(['after the head', 'in the middle'])('is set to silence %s', async (where) => {
    const { server, there } = await reaching((reply) => {
      reply.head();
      if (where === 'in the middle') reply.chunk(delta({ content: 'one' }));
    });
    const begun = performance.now();
    const { error } = await collect(clientOf(server.url, { idleMs: 100 }).stream(ask('hello')));
    const took = performance.now() - begun;
    expect(error).toMatchObject({ code: 'timeout', message: "The model's backend has been silent for 0.1 seconds." });
    expect(took).toBeGreaterThan(95);
    expect(took).toBeLessThan(400);
    await (await there).closed;
  });

  it('is not reached by who only says that it is still there', async () => {
    const server = await ScriptedBackend.start(async (reply) => {
      reply.head();
      for (let i = 0; i < 8; i++) {
        await sleep(50);
        reply.chunk(': still there\n\n');
      }
      reply.chunk(saying('hi'));
      reply.end();
    });
    const answer = await wholeAnswer(clientOf(server.url, { idleMs: 250 }).stream(ask('hello')));
    expect(answer).toMatchObject({ text: 'hi' });
  });

  it('ends an answer that is complete but not closed', async () => {
    const { server, there } = await reaching((reply) => {
      reply.head();
      reply.chunk(delta({ content: 'hi' }) + delta({}, 'stop'));
    });
    const begun = performance.now();
    const answer = await wholeAnswer(clientOf(server.url, { lingerMs: 50 }).stream(ask('hello')));
    expect(answer).toMatchObject({ text: 'hi', finish: 'stop' });
    expect(performance.now() - begun).toBeLessThan(400);
    await (await there).closed;
  });

  it('is set to a body that goes on after [DONE]: nobody waits for it, and its connection is closed', async () => {
    const { server, there } = await reaching((reply) => {
      reply.head();
      reply.chunk(delta({ content: 'hi' }) + delta({}, 'stop') + DONE);
    });
    const begun = performance.now();
    expect(await wholeAnswer(clientOf(server.url).stream(ask('hello')))).toMatchObject({ text: 'hi' });
    expect(performance.now() - begun).toBeLessThan(400);
    await (await there).closed;
  });
});

describe('an answer', () => {
  it('is complete when the connection is lost after its finish reason', async () => {
    const server = await ScriptedBackend.start(async (reply) => {
      reply.head();
      reply.chunk(delta({ content: 'hi' }) + delta({}, 'length'));
      await sleep(20);
      reply.cut();
    });
    expect(await wholeAnswer(clientOf(server.url).stream(ask('hello')))).toMatchObject({
      text: 'hi',
      finish: 'length',
    });
  });

  it('may end with its connection, as in HTTP/1.0', async () => {
    const server = await ScriptedBackend.start((reply) => {
      reply.raw(`HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${saying('hi')}`);
      reply.socket.end();
    });
    expect(await wholeAnswer(clientOf(server.url).stream(ask('hello')))).toMatchObject({ text: 'hi' });
  });

  it('leaves no socket and no timer behind, however it ends', async () => {
    const used = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout' || name === 'TCPSocketWrap').length;
    const server = await ScriptedBackend.start();
    const ends: ((reply: Reply) => unknown)[] = [
      (reply) => reply.stream(saying('hi')),
      (reply) => reply.json(400, {}),
      (reply) => begin(reply, delta({ content: 'x' })).cut(),
      (reply) => begin(reply, 'data: {"broken\n\n'),
      (reply) => begin(reply, delta({ content: 'x' })),
    ];
    const before = used();
    for (const end of ends) {
      server.scripts = [(reply) => void end(reply)];
      const client = clientOf(server.url, { idleMs: 50 });
      await collect(client.stream(ask('hello')));
      client.close();
    }
    await eventually(() => server.sockets.size === 0);
    await eventually(() => used() <= before);
  });
});
