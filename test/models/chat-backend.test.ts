import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { wholeAnswer } from '../../src/models/answer.ts';
import { ChatBackend, type ChatBackendOptions } from '../../src/models/chat-backend.ts';
import type { ModelRequest } from '../../src/models/model.ts';
import { eventually } from '../streams/logs.ts';
import { DONE, delta, frame, type Reply, type Script, ScriptedBackend, saying } from '../support/model-backend.ts';
import { ask, collect } from './collect.ts';
import { expectHabit } from './habit.ts';
import { HABITS } from './habits.ts';

const KEY = 'sk-very-secret-0123456789';
const backends: ChatBackend[] = [];

/** Waits between repetitions that no test has to sit through. */
const QUICK = { firstDelayMs: 1, longestDelayMs: 5 };

const clientOf = (baseUrl: string, options: Partial<ChatBackendOptions> = {}): ChatBackend => {
  const backend = new ChatBackend({ baseUrl, apiKey: KEY, retry: QUICK, ...options });
  backends.push(backend);
  return backend;
};

const serving = async (...scripts: Script[]): Promise<ScriptedBackend> => ScriptedBackend.start(...scripts);

afterEach(() => {
  for (const backend of backends.splice(0)) backend.close();
});

describe('a backend over HTTP', () => {
  describe('has habits', () => {
    let server: ScriptedBackend;
    beforeAll(async () => {
      server = await serving();
    });
    afterAll(() => server.stop());

    it.each(HABITS)('$name', async (habit) => {
      server.scripts = [(reply) => reply.stream(habit.body)];
      expectHabit(habit, await collect(clientOf(server.url).stream(ask('hello'))));
    });
  });

  it.each([
    ['http://host', '/v1/chat/completions'],
    ['http://host/', '/v1/chat/completions'],
    ['http://host/v1', '/v1/chat/completions'],
    ['http://host/v1/', '/v1/chat/completions'],
    ['http://host/proxy', '/proxy/v1/chat/completions'],
    ['http://host/api/v3', '/api/v3/chat/completions'],
    ['http://host/v1beta/openai', '/v1beta/openai/chat/completions'],
    ['http://host/openai/v1?api-version=2', '/openai/v1/chat/completions?api-version=2'],
  ])('is found at %s', async (address, path) => {
    const server = await serving((reply) => reply.stream(saying('hi')));
    const { error } = await collect(clientOf(address.replace('host', `127.0.0.1:${server.port}`)).stream(ask('hello')));
    expect(error).toBeUndefined();
    expect(server.requests[0]?.path).toBe(path);
  });

  it('is sent everything that was asked, in its own words', async () => {
    const server = await serving((reply) => reply.stream(saying('hi')));
    const request: ModelRequest = {
      model: 'm-1',
      messages: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'see' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: '3' },
      ],
      tools: [{ name: 'add', description: 'Adds.', parameters: { type: 'object' }, strict: true }, { name: 'now' }],
      toolChoice: { name: 'add' },
      ...{
        parallelToolCalls: false,
        temperature: 0,
        topP: 0.5,
        maxTokens: 9,
        stop: ['x'],
        reasoningEffort: 'low',
        seed: 7,
      },
      ...{ responseFormat: { type: 'json_object' }, user: 'ann' },
      extra: { top_k: 5, model: 'other', stream: false, n: 4 },
    };
    await collect(clientOf(server.url, { headers: { 'X-Team': 'blue' } }).stream(request));
    expect(server.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      'x-team': 'blue',
      'content-type': 'application/json',
    });
    expect(server.requests[0]?.body).toEqual({
      ...{ model: 'm-1', stream: true, stream_options: { include_usage: true }, top_k: 5 },
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'a\nb' },
        request.messages[2],
        request.messages[3],
        request.messages[4],
      ],
      tools: [
        {
          type: 'function',
          function: { name: 'add', description: 'Adds.', parameters: { type: 'object' }, strict: true },
        },
        { type: 'function', function: { name: 'now', parameters: { type: 'object', properties: {} } } },
      ],
      tool_choice: { type: 'function', function: { name: 'add' } },
      ...{
        parallel_tool_calls: false,
        temperature: 0,
        top_p: 0.5,
        max_tokens: 9,
        stop: ['x'],
        reasoning_effort: 'low',
        seed: 7,
      },
      ...{ response_format: { type: 'json_object' }, user: 'ann' },
    });
  });

  it('gives every event as soon as it has come', async () => {
    let reply: Reply | undefined;
    const server = await serving((r) => {
      reply = r;
      r.head();
      r.chunk(delta({ content: 'one' }));
    });
    const events = clientOf(server.url).stream(ask('hello'));
    expect((await events.next()).value).toMatchObject({ type: 'start' });
    expect((await events.next()).value).toEqual({ type: 'text', delta: 'one' });
    const next = events.next();
    reply?.chunk(delta({ content: 'two' }));
    expect((await next).value).toEqual({ type: 'text', delta: 'two' });
    reply?.chunk(delta({}, 'stop') + DONE);
    expect((await events.next()).value).toMatchObject({ type: 'finish' });
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  it('uses one connection for requests that follow each other, even if the body ends after [DONE]', async () => {
    const server = await serving(async (reply) => {
      reply.head();
      reply.chunk(saying('hi'));
      await sleep(20);
      reply.end();
    });
    const client = clientOf(server.url);
    for (let i = 0; i < 3; i++) {
      expect(await wholeAnswer(client.stream(ask('hello')))).toMatchObject({ text: 'hi', finish: 'stop' });
      await sleep(200); // until the end has come as well
    }
    expect(server).toMatchObject({ accepted: 1, requests: { length: 3 } });
  });

  it('answers many at once', async () => {
    const server = await serving(async (reply) => {
      const [message] = reply.request.body.messages as [{ content: string }];
      reply.head();
      for (let i = 0; i < 20; i++) {
        reply.chunk(delta({ content: `${message.content}.${i} ` }));
        if (i % 5 === 0) await sleep(1);
      }
      reply.chunk(delta({}, 'stop') + DONE);
      reply.end();
    });
    const client = clientOf(server.url);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => wholeAnswer(client.stream(ask(String(n))))));
    for (const [n, { text }] of answers.entries()) {
      expect(text).toBe(Array.from({ length: 20 }, (_, i) => `${n}.${i} `).join(''));
    }
  });

  it('is asked for nothing before the first event is wanted', async () => {
    const server = await serving((reply) => reply.stream(saying('hi')));
    const events = clientOf(server.url).stream(ask('hello'));
    await sleep(20);
    expect(server.accepted).toBe(0);
    await events.return();
    expect(await events.next()).toEqual({ done: true, value: undefined });
    expect(server.accepted).toBe(0);
  });

  it('is held back by a reader that takes its time, and loses nothing', async () => {
    const count = 20_000;
    const word = 'x'.repeat(500);
    let written = 0;
    const server = await serving(async (reply) => {
      reply.head();
      for (; written < count; written++) {
        reply.chunk(delta({ content: `${written} ${word}` }));
        if (reply.socket.writableNeedDrain) await once(reply.socket, 'drain');
      }
      reply.chunk(delta({}, 'stop') + DONE);
      reply.end();
    });
    // Silence that comes from the reader is not the backend's: the limit is far shorter than the wait.
    const events = clientOf(server.url, { idleMs: 100, firstByteMs: 5_000 }).stream(ask('hello'));
    await events.next();
    await sleep(300);
    const held = written;
    expect(held).toBeLessThan(count);
    await sleep(200);
    expect(written).toBe(held);
    let seen = 0;
    for await (const event of events)
      if (event.type === 'text') expect(event.delta.startsWith(`${seen++} `)).toBe(true);
    expect(seen).toBe(count);
  });

  describe('learns', () => {
    it('not to ask for usage, once it is refused for that, and remembers it', async () => {
      const refuse: Script = (reply) => reply.json(400, { error: { message: "Unknown field 'stream_options'" } });
      const server = await serving(refuse, (reply) => reply.stream(saying('hi')));
      const client = clientOf(server.url);
      for (let i = 0; i < 2; i++) expect((await collect(client.stream(ask('hello')))).error).toBeUndefined();
      expect(server.requests.map(({ body }) => 'stream_options' in body)).toEqual([true, false, false]);
    });

    it('the same when several find out at once', async () => {
      const server = await serving((reply) =>
        'stream_options' in reply.request.body
          ? reply.json(422, {
              detail: [{ loc: ['body', 'stream_options'], msg: 'stream_options: extra fields not permitted' }],
            })
          : reply.stream(saying('hi')),
      );
      const client = clientOf(server.url);
      const all = await Promise.all([1, 2, 3].map(() => collect(client.stream(ask('hello')))));
      expect(all.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
    });

    it('the other name of max_tokens, for this model', async () => {
      const server = await serving((reply) =>
        'max_tokens' in reply.request.body && reply.request.body.model === 'o'
          ? reply.json(400, { error: { message: "Use 'max_completion_tokens' instead." } })
          : reply.stream(saying('hi')),
      );
      const client = clientOf(server.url);
      for (const model of ['o', 'o', 'm']) {
        await collect(client.stream({ ...ask('hello'), model, maxTokens: 5 }));
      }
      const names = server.requests.map(({ body }) => Object.keys(body).find((name) => name.startsWith('max_')));
      expect(names).toEqual(['max_tokens', 'max_completion_tokens', 'max_completion_tokens', 'max_tokens']);
    });

    it('nothing from a refusal that does not end', async () => {
      const server = await serving((reply) => reply.json(400, { error: { message: 'stream_options, really' } }));
      const { error } = await collect(clientOf(server.url).stream(ask('hello')));
      expect(error).toMatchObject({ code: 'invalid_request', status: 400 });
      expect(server.requests).toHaveLength(2);
    });
  });

  describe('is asked again', () => {
    it.each([408, 409, 429, 500, 502, 503, 504])('after %d, and then answers', async (status) => {
      const server = await serving(
        (reply) => reply.json(status, { error: { message: 'later' } }),
        (reply) => reply.stream(saying('hi')),
      );
      const waits: number[] = [];
      const client = clientOf(server.url, { retried: (_, ms) => waits.push(ms) });
      expect(await wholeAnswer(client.stream(ask('hello')))).toMatchObject({ text: 'hi' });
      expect(server.requests).toHaveLength(2);
      expect(waits).toEqual([expect.any(Number)]);
    });

    it.each([400, 401, 403, 404, 413, 422, 301, 501])('but not after %d', async (status) => {
      const server = await serving((reply) => reply.json(status, { error: { message: 'no' } }));
      expect((await collect(clientOf(server.url).stream(ask('hello')))).error).toMatchObject({
        status,
        retryable: false,
      });
      expect(server.requests).toHaveLength(1);
    });

    it('a few times, then the error is told', async () => {
      const server = await serving((reply) => reply.json(503, { error: { message: 'overloaded' } }));
      const { error } = await collect(clientOf(server.url, { retry: { ...QUICK, retries: 3 } }).stream(ask('hello')));
      expect(error).toMatchObject({ code: 'unavailable', status: 503, retryable: true });
      expect(error?.message).toContain('overloaded');
      expect(server.requests).toHaveLength(4);
    });

    it('when the connection is closed before the first byte', async () => {
      const server = await serving(
        (reply) => reply.cut(),
        (reply) => reply.stream(saying('hi')),
      );
      expect(await wholeAnswer(clientOf(server.url).stream(ask('hello')))).toMatchObject({ text: 'hi' });
    });

    it('when nobody listens, and then the error says so', async () => {
      const server = await serving();
      const { url } = server;
      await server.stop();
      const retried = jest.fn();
      const { error } = await collect(clientOf(url, { retried }).stream(ask('hello')));
      expect(error).toMatchObject({
        code: 'unavailable',
        message: "The model's backend cannot be reached (ECONNREFUSED).",
      });
      expect(retried).toHaveBeenCalledTimes(2);
    });

    it('when a server closes right after it has accepted', async () => {
      const server = createServer((socket: Socket) => socket.destroy()).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as { port: number };
      const { error } = await collect(clientOf(`http://127.0.0.1:${port}`).stream(ask('hello')));
      expect(error).toMatchObject({ code: 'unavailable' });
      server.close();
    });

    it('never after the first byte, whatever happens then', async () => {
      const ends: [Script, string][] = [
        [(reply) => reply.cut(), 'unavailable'],
        [(reply) => reply.end(), 'bad_answer'],
        [(reply) => reply.chunk(frame({ error: { message: 'overloaded', code: 503 } })), 'unavailable'],
        [(reply) => reply.raw('nonsense\r\n'), 'unavailable'],
        [() => {}, 'timeout'],
      ];
      for (const [end, code] of ends) {
        const server = await serving(async (reply) => {
          reply.head();
          await sleep(20);
          await end(reply);
        });
        const { events, error } = await collect(clientOf(server.url, { idleMs: 100 }).stream(ask('hello')));
        expect({ code: error?.code, events, requests: server.requests.length }).toEqual({
          code,
          events: [],
          requests: 1,
        });
      }
    });

    it('after as long as it says, if that is not too long', async () => {
      const server = await serving(
        (reply) => reply.json(429, {}, { 'retry-after': '0.2' }),
        (reply) => reply.stream(saying('hi')),
      );
      const begun = performance.now();
      await wholeAnswer(clientOf(server.url).stream(ask('hello')));
      expect(performance.now() - begun).toBeGreaterThan(195);
    });

    it('not at all if that is too long: the caller hears how long', async () => {
      const server = await serving((reply) =>
        reply.json(429, { error: { message: 'slow down' } }, { 'retry-after': '60' }),
      );
      const { error } = await collect(clientOf(server.url).stream(ask('hello')));
      expect(error).toMatchObject({ code: 'rate_limited', retryAfterMs: 60_000, retryable: true });
      expect(server.requests).toHaveLength(1);
    });

    it('not when the quota is spent, which waiting does not change', async () => {
      const server = await serving((reply) =>
        reply.json(429, { error: { message: 'You exceeded your quota', code: 'insufficient_quota' } }),
      );
      expect((await collect(clientOf(server.url).stream(ask('hello')))).error).toMatchObject({
        code: 'rate_limited',
        retryable: false,
      });
      expect(server.requests).toHaveLength(1);
    });
  });

  describe('fails', () => {
    const long = `no ${'x'.repeat(5_000)}`;
    const cases: [number, string, string, string | RegExp][] = [
      [401, '{"error":{"message":"bad key"}}', 'auth', "The model's backend answered 401: bad key"],
      [403, '{"message":"forbidden"}', 'auth', /: forbidden$/],
      [404, '{"error":{"message":"model \'x\' not found"}}', 'not_found', /model 'x' not found/],
      [400, '{"error":{"message":"too much","code":"context_length_exceeded"}}', 'context_length', /too much/],
      [
        400,
        '{"object":"error","message":"This model\'s maximum context length is 10 tokens."}',
        'context_length',
        /maximum/,
      ],
      [400, '{"error":{"message":"filtered","code":"content_filter"}}', 'content_filter', /filtered/],
      [400, '{"error":{"message":"gone","code":"model_not_found"}}', 'not_found', /gone/],
      [
        400,
        '[{"error":{"code":400,"message":"in a list","status":"INVALID_ARGUMENT"}}]',
        'invalid_request',
        /in a list/,
      ],
      [400, '{"error":"in words"}', 'invalid_request', /in words/],
      [422, '{"detail":[{"loc":["body"],"msg":"field required"}]}', 'invalid_request', /field required/],
      [422, '{"detail":"not this way"}', 'invalid_request', /not this way/],
      [413, 'too big', 'too_large', /: too big$/],
      [500, '<html><body>Internal error at /home/x</body></html>', 'unavailable', "The model's backend answered 500."],
      [502, '', 'unavailable', "The model's backend answered 502."],
      [504, '', 'timeout', "The model's backend answered 504."],
      [302, '', 'bad_answer', "The model's backend answered 302."],
      [400, `{"error":{"message":"${long}"}}`, 'invalid_request', /: no x{997}\.\.\.$/],
    ];

    it.each(cases)('with %d %s: %s', async (status, body, code, message) => {
      const server = await serving((reply) => reply.send(status, body));
      const { error } = await collect(clientOf(server.url, { retry: { retries: 0 } }).stream(ask('hello')));
      expect(error).toMatchObject({
        code,
        status,
        message: typeof message === 'string' ? message : expect.stringMatching(message),
      });
    });

    it('and its errors never hold a secret, even if it repeats them', async () => {
      const headers = { 'X-Key': 'Token other-secret-9876', Authorization: `Bearer ${KEY}` };
      const said = `Wrong key ${KEY} or other-secret-9876`;
      const inBand: Script = (reply) => reply.stream(delta({ content: 'x' }) + frame({ error: { message: said } }));
      const answers: Script[] = [
        (reply) => reply.json(401, { error: { message: said } }),
        (reply) => reply.send(500, said),
        (reply) => reply.send(400, `${'y'.repeat(990)}${said}`),
        (reply) => reply.stream(`event: error\ndata: ${said}\n\n`),
        inBand,
      ];
      for (const script of answers) {
        const server = await serving(script);
        const { error } = await collect(clientOf(server.url, { headers, retry: { retries: 0 } }).stream(ask('hello')));
        const all = JSON.stringify([error?.message, error?.stack, error?.cause, { ...error }]);
        expect(all).toContain('error');
        expect(all).not.toMatch(/sk-very|0123456789|other-secret|9876/);
      }
    });

    it('when it does not speak HTTP', async () => {
      const server = await serving((reply) => reply.raw('SSH-2.0-OpenSSH\r\n'));
      expect((await collect(clientOf(server.url).stream(ask('hello')))).error).toMatchObject({ code: 'bad_answer' });
    });

    it('when it answers in an encoding that nobody asked for', async () => {
      const server = await serving((reply) => reply.send(200, 'xx', { 'content-encoding': 'gzip' }));
      const { error } = await collect(clientOf(server.url).stream(ask('hello')));
      expect(error).toMatchObject({ code: 'bad_answer', message: expect.stringContaining('gzip') });
    });

    it('when the request is larger than allowed, without being asked', async () => {
      const server = await serving((reply) => reply.stream(saying('hi')));
      const { error } = await collect(clientOf(server.url, { maxRequestBytes: 1_000 }).stream(ask('x'.repeat(1_000))));
      expect(error).toMatchObject({ code: 'too_large' });
      expect(server.accepted).toBe(0);
    });

    it('when an answer is larger than allowed, and its connection is closed', async () => {
      let closed: Promise<number> | undefined;
      const server = await serving(async (reply) => {
        ({ closed } = reply);
        reply.head();
        for (let i = 0; i < 100; i++) reply.chunk(delta({ content: 'word' }));
      });
      const { error } = await collect(clientOf(server.url, { maxBytes: 3_000 }).stream(ask('hello')));
      expect(error).toMatchObject({ code: 'too_large' });
      await closed;
    });

    it('does not wait for an error that does not end', async () => {
      const server = await serving((reply) => {
        reply.head(400, {});
        for (let i = 0; i < 20; i++) reply.chunk('x'.repeat(10_000));
      });
      const { error } = await collect(clientOf(server.url).stream(ask('hello')));
      expect(error).toMatchObject({ code: 'invalid_request' });
      await eventually(() => server.sockets.size === 0);
    });
  });

  it('breaks off when it is closed', async () => {
    const server = await serving((reply) => {
      reply.head();
      reply.chunk(delta({ content: 'one' }));
    });
    const client = clientOf(server.url);
    const events = client.stream(ask('hello'));
    await events.next();
    await events.next();
    client.close();
    await expect(events.next()).rejects.toMatchObject({ code: 'unavailable' });
    await eventually(() => server.sockets.size === 0);
  });

  it('has its configuration checked at once', () => {
    expect(() => new ChatBackend({ baseUrl: 'ftp://host' })).toThrow('http');
    expect(() => new ChatBackend({ baseUrl: 'http://host', apiKey: 'line\nbreak' })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('break') }),
    );
  });

  describe('lists its models', () => {
    it.each([
      ['as a list of objects', { data: [{ id: 'a', created: 5, owned_by: 'x' }, { id: 'b' }, {}, null] }],
      ['as a bare list', [{ id: 'a', created: 5, owned_by: 'x' }, 'b']],
      ['by names', { models: [{ name: 'a', created: 5, owned_by: 'x' }, { name: 'b' }] }],
    ])('%s', async (_, body) => {
      const server = await serving((reply) => reply.json(200, body));
      expect(await clientOf(server.url).models()).toEqual([{ id: 'a', created: 5, ownedBy: 'x' }, { id: 'b' }]);
      expect(server.requests[0]).toMatchObject({ method: 'GET', path: '/v1/models' });
    });

    it('or says why not', async () => {
      const server = await serving(
        (reply) => reply.json(401, {}),
        (reply) => reply.send(200, 'x'),
        () => {},
        (reply) => reply.head(),
      );
      const client = clientOf(server.url, { listMs: 50 });
      for (const code of ['auth', 'bad_answer', 'timeout', 'timeout']) {
        await expect(client.models()).rejects.toMatchObject({ name: 'ModelError', code });
      }
      await expect(client.models({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'cancelled' });
      await eventually(() => server.sockets.size === 0);
    });
  });
});
