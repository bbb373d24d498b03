import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { EventSource } from 'eventsource';
import { eventually } from '../streams/logs.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { ScriptedBackend } from '../support/model-backend.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const MANIFESTS = `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: writer, version: 1.0.0 }
spec:
  role: You write.
  capabilities:
    - name: write_text
      description: Writes something.
      input_schema: { type: object, properties: { prompt: { type: string } }, required: [prompt] }
    - name: slow_words
      timeout_seconds: 1
    - name: patient_words
    - name: secret_work
      scopes: [very.special]
    - name: look_up
      description: Asks a tool.
    - name: missing_tool
    - name: guarded_tool
runtime:
  bindings:
    guarded_tool: { tool: guarded }
    look_up: { tool: lookup }
    missing_tool: { tool: nothing_there }
---
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: busy, version: 1.0.0 }
spec:
  role: You are busy.
  capabilities: [wait, look_up]
  constraints: { performance: { maxConcurrentRequests: 1, timeoutSeconds: 2 } }
---
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: limited, version: 1.0.0 }
spec:
  role: You are limited.
  capabilities: [often]
  safety: { rate_limiting: { enabled: true, requests_per_minute: 2, burst_limit: 2 } }
`;

interface Started {
  readonly streamId: string;
  readonly taskId: string;
  readonly streamUrl: string;
  readonly correlationId: string;
}

interface Event {
  readonly type: string;
  readonly id: string;
  readonly payload: Record<string, unknown> & { capability: string; result?: unknown };
  readonly metadata: { agentId: string; streamId: string; correlationId: string; sequence: number; final?: boolean };
}

describe('an agent with a model of a backend', () => {
  it('is told its role, and asks the next model of its manifest when the first has nothing to say', async () => {
    const chunk = {
      id: 'x',
      model: 'second',
      choices: [{ delta: { content: 'from the backend' }, finish_reason: 'stop' }],
    };
    const backend = await ScriptedBackend.start(
      (reply) => reply.json(404, { error: { message: 'no such model' } }),
      (reply) => reply.stream(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`),
    );
    const directory = makeDirectory();
    directory.write(
      'a.ossa.yaml',
      `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: thinker, version: 1.0.0 }
spec:
  role: You think.
  llm: { provider: custom, model: first, temperature: 0.5, maxTokens: 9, fallback_models: [{ model: second }] }
  capabilities: [think]
`,
    );
    const gateway = await startGateway({
      SLUICE_MANIFESTS: directory.path,
      OPENAI_BASE_URL_INTERNAL: backend.url,
      OPENAI_API_KEY: 'the key of the backend',
    });
    const headers = { Authorization: `Bearer ${tokenFor({ scope: 'capabilities' })}` };
    const body = JSON.stringify({ text: 'hm' });
    const answer = await fetch(`${gateway.url}/capabilities/think`, { method: 'POST', headers, body });
    const { streamId } = (await answer.json()) as Started;
    const stream = new RawStream(gateway.port, `/events?stream=${streamId}`, headers);
    await eventually(() => stream.body.includes('"final":true'));
    stream.close();
    expect(stream.body).toContain('"result":{"text":"from the backend","model":"second"}');
    const [first, second] = backend.requests;
    expect(first?.headers.authorization).toBe('Bearer the key of the backend');
    expect(first?.body).toMatchObject({
      ...{ model: 'first', stream: true, temperature: 0.5, max_tokens: 9 },
      messages: [
        { role: 'system', content: 'You think.' },
        { role: 'user', content: 'hm' },
      ],
    });
    expect(second?.body).toMatchObject({ model: 'second' });
    await gateway.stop();
    await backend.stop();
    directory.remove();
  });
});

describe('an agent that brings an MCP server along', () => {
  it('can be asked, and its server leaves with it', async () => {
    const server = join(__dirname, '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js');
    const directory = makeDirectory();
    directory.write(
      'a.ossa.yaml',
      `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: helped, version: 1.0.0 }
spec:
  role: You use tools.
  capabilities: [say, chat]
  tools:
    - { type: mcp, name: everything, config: { command: ${process.execPath}, args: [${server}, stdio] } }
runtime: { bindings: { say: { mcp_server: everything, tool: echo } } }
`,
    );
    const gateway = await startGateway({ SLUICE_MANIFESTS: directory.path, SLUICE_MODELS_DEMO_WORDS_PER_SECOND: '0' });
    const token = tokenFor({ scope: 'capabilities' });
    const { registry } = gateway.gateway.toolbox;
    await eventually(() => registry.find('everything.echo') !== undefined);
    const ask = async (name: string, input: unknown): Promise<string> => {
      const headers = { Authorization: `Bearer ${token}` };
      const answer = await fetch(`${gateway.url}/capabilities/${name}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(input),
      });
      const { streamId } = (await answer.json()) as Started;
      const stream = new RawStream(gateway.port, `/events?stream=${streamId}`, headers);
      await eventually(() => stream.body.includes('"final":true'));
      stream.close();
      return stream.frames.at(-1) as string;
    };
    expect(await ask('say', { message: 'hello' })).toContain('"result":{"text":"Echo: hello"}');
    // The model calls the tool, reads what it gave, and answers without tools.
    expect(await ask('chat', { text: 'use echo with {"message":"from the model"}' })).toContain('Echo: from the model');
    directory.write(
      'a.ossa.yaml',
      'apiVersion: ossa/v0.3.2\nkind: Agent\nmetadata: { name: helped }\nspec: { role: Alone. }\n',
    );
    await eventually(() => registry.find('everything.echo') === undefined);
    await gateway.stop();
    directory.remove();
  });
});

describe.each(['memory', 'redis'])('capabilities on %s', (store) => {
  let directory: TestDirectory;
  let redis: RunningRedis | undefined;
  let tool: Server;
  let gateways: RunningGateway[];
  const token = tokenFor({ sub: 'ann', scope: 'capabilities' });

  beforeAll(async () => {
    directory = makeDirectory();
    directory.write('agents.ossa.yaml', MANIFESTS);
    redis = store === 'redis' ? await startRedis() : undefined;
    tool = createServer((_, res) => res.setHeader('content-type', 'application/json').end('{"found":true}'));
    await new Promise<void>((resolve) => tool.listen(0, '127.0.0.1', resolve));
    const { port } = tool.address() as AddressInfo;
    directory.write(
      'sluice.yaml',
      `tools:\n  http:\n    lookup: { url: 'http://127.0.0.1:${port}/', allowPrivate: true }\n    guarded: { url: 'http://127.0.0.1:${port}/', allowPrivate: true, approval: always }\n`,
    );
    const env = {
      SLUICE_MANIFESTS: directory.path,
      SLUICE_MODELS_DEMO_WORDS_PER_SECOND: '400',
      SLUICE_CONFIG: `${directory.path}/sluice.yaml`,
      ...(redis && { REDIS_URL: redis.url }),
    };
    gateways = [await startGateway(env), await startGateway(env)];
    await eventually(() => gateways.every(({ gateway }) => gateway.hub.loaded));
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    tool.closeAllConnections();
    await new Promise((resolve) => tool.close(resolve));
    await redis?.stop();
    directory.remove();
  });
  const here = (): RunningGateway => gateways[0] as RunningGateway;
  /** With the embedded store every gateway is alone. */
  const there = (): RunningGateway => gateways[store === 'redis' ? 1 : 0] as RunningGateway;

  const invoke = async (
    path: string,
    body: unknown = {},
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: Started & { code?: string; message?: string }; retryAfter: string | null }> => {
    const answer = await fetch(`${here().url}/capabilities/${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, ...headers },
      body: JSON.stringify(body),
    });
    const parsed = (await answer.json()) as Started;
    return { status: answer.status, body: parsed, retryAfter: answer.headers.get('retry-after') };
  };

  const whole = async (gateway: RunningGateway, path: string): Promise<Event[]> => {
    const stream = new RawStream(
      gateway.port,
      path,
      path.includes('ticket=') ? {} : { Authorization: `Bearer ${token}` },
    );
    await eventually(() => stream.body.includes('"final":true'));
    stream.close();
    expect(stream.frames[0]).toBe('retry: 3000');
    return stream.frames.flatMap((frame) => {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      return data === undefined ? [] : [JSON.parse(data) as Event];
    });
  };

  it.each([
    ['raw body', 'write_text', { prompt: 'say exactly: hello world' }],
    [
      'wrapped body',
      'write_text/invoke',
      { input: { prompt: 'say exactly: hello world' }, options: { timeout_seconds: 5 } },
    ],
    ['qualified name', 'writer.write_text', { prompt: 'say exactly: hello world' }],
  ])('answers 202 and streams the result: %s', async (_, path, body) => {
    const { status, body: started } = await invoke(path, body, { 'X-Correlation-ID': 'req-789' });
    expect(status).toBe(202);
    expect(started).toMatchObject({ correlationId: 'req-789', taskId: started.streamId });
    expect(started.streamId).toMatch(/^[0-9a-f-]{36}$/);
    const streamUrl = new URL(started.streamUrl);
    expect(streamUrl.origin).toBe(here().url);
    const id = started.streamId;
    const all = await whole(there(), streamUrl.pathname + streamUrl.search);
    for (const route of [`/events?stream=${id}`, `/events?task=${id}`, `/events/stream/${id}`]) {
      expect(await whole(there(), route)).toEqual(all);
    }
    const metadata = { agentId: 'agent://default/writer', streamId: id, correlationId: 'req-789' };
    expect(all.map((event) => event.metadata)).toEqual(
      all.map((__, i) => ({ ...metadata, sequence: i + 1, ...(i === all.length - 1 && { final: true }) })),
    );
    expect(all.map(({ payload }) => payload.delta ?? '').join('')).toBe('hello world');
    expect(all.at(-1)).toMatchObject({
      type: 'capability_response',
      payload: { capability: 'write_text', result: { text: 'hello world', model: 'sluice-demo' } },
    });
  });

  it('runs as the tool that it is bound to', async () => {
    const { body } = await invoke('writer.look_up');
    const [only, ...more] = await whole(there(), `/events?stream=${body.streamId}`);
    expect(only?.payload).toEqual({ capability: 'look_up', result: { found: true } });
    expect(more).toEqual([]);
  });

  it.each([
    ['guarded_tool', {}, 'CAPABILITY_ERROR', 'guarded may only be called when somebody agrees'],
    ['missing_tool', {}, 'CAPABILITY_ERROR', 'There is no tool "nothing_there".'],
    ['write_text', { prompt: 'fail with 503' }, 'CAPABILITY_ERROR', '503'],
    ['slow_words', { text: 'wait 30 seconds' }, 'TIMEOUT', 'slow_words took longer than 1 s.'],
  ])('ends %s with one error', async (name, input, code, message) => {
    const { body } = await invoke(name, input);
    const last = (await whole(here(), `/events?stream=${body.streamId}`)).at(-1);
    expect(last).toMatchObject({ type: 'error', payload: { code, message: expect.stringContaining(message) } });
    expect(last?.metadata.final).toBe(true);
  });

  it.each([
    ['nonsense', {}, {}, 404, 'CAPABILITY_NOT_FOUND'],
    ['look_up', {}, {}, 409, 'CONFLICT'],
    ['write_text', {}, {}, 400, 'PROTOCOL_ERROR'],
    ['write_text', { prompt: 7 }, {}, 400, 'PROTOCOL_ERROR'],
    ['write_text', [], {}, 400, 'PROTOCOL_ERROR'],
    ['write_text/invoke', { prompt: 'x' }, {}, 400, 'PROTOCOL_ERROR'],
    ['secret_work', {}, {}, 403, 'FORBIDDEN'],
    ['write_text', { prompt: 'x' }, { Authorization: `Bearer ${tokenFor({ scope: 'ors' })}` }, 403, 'FORBIDDEN'],
    ['write_text', { prompt: 'x' }, { Authorization: 'Bearer nonsense' }, 401, 'AUTH_FAILED'],
    ['write_text', { prompt: 'x' }, { 'Idempotency-Key': 'a b' }, 400, 'PROTOCOL_ERROR'],
  ])('refuses %s with %j (%j): %i', async (path, body, headers, status, code) => {
    const refused = await invoke(path, body, headers);
    expect(refused).toMatchObject({ status, body: { code } });
  });

  it('knows the scopes that a manifest asks for', async () => {
    const special = tokenFor({ sub: 'ann', scope: 'capabilities very.special' });
    expect((await invoke('secret_work', {}, { Authorization: `Bearer ${special}` })).status).toBe(202);
  });

  it('runs once for the same Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'once' };
    const first = await invoke('write_text', { prompt: 'say exactly: a' }, headers);
    const again = await invoke('write_text', { prompt: 'say exactly: a' }, headers);
    const { streamId, correlationId } = first.body;
    expect(again.body).toMatchObject({ streamId, correlationId }); // the one that is on the frames
    expect((await invoke('write_text', { prompt: 'say exactly: b' }, headers)).status).toBe(409);
  });

  it('does as many at once as the manifest says; the others wait', async () => {
    const first = await invoke('wait', { text: 'wait 1 seconds' });
    const second = await invoke('wait', { text: 'say exactly: after' });
    const begin = performance.now();
    const last = (await whole(here(), `/events?stream=${second.body.streamId}`)).at(-1);
    expect(last?.payload.result).toMatchObject({ text: 'after' });
    expect(performance.now() - begin).toBeGreaterThan(300);
    await whole(here(), `/events?stream=${first.body.streamId}`);
  });

  it('refuses those who would wait in a line that is full', async () => {
    const queue = await startGateway({ SLUICE_MANIFESTS: directory.path, SLUICE_MODELS_DEMO_WORDS_PER_SECOND: '0' });
    const ask = (): Promise<Response> =>
      fetch(`${queue.url}/capabilities/wait`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}` },
        body: JSON.stringify({ text: 'wait 600 seconds' }),
      });
    const statuses: number[] = [];
    for (let i = 0; i < 102; i++) statuses.push((await ask()).status);
    expect(statuses).toEqual([...Array(101).fill(202), 429]); // one that runs, a hundred that wait
    await queue.stop();
  });

  it('gives up after the time that the agent has, or that was asked for', async () => {
    const last = async (path: string, body: unknown): Promise<Event | undefined> => {
      const { body: started } = await invoke(path, body);
      return (await whole(here(), `/events?stream=${started.streamId}`)).at(-1);
    };
    const text = 'wait 600 seconds';
    const message = (seconds: number, name: string): string => `${name} took longer than ${seconds} s.`;
    expect(await last('wait', { text })).toMatchObject({ payload: { code: 'TIMEOUT', message: message(2, 'wait') } });
    const options = { timeout_seconds: 0.2 }; // clamped to a second
    expect(await last('patient_words/invoke', { input: { text }, options })).toMatchObject({
      payload: { code: 'TIMEOUT', message: message(1, 'patient_words') },
    });
  });

  it('names the address that a trusted proxy says', async () => {
    const behind = await startGateway({ SLUICE_MANIFESTS: directory.path, SLUICE_TRUST_PROXY: 'loopback' });
    const headers = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'agents.example.com' };
    const ask = async (gateway: RunningGateway): Promise<string> => {
      const answer = await fetch(`${gateway.url}/capabilities/write_text`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, ...headers },
        body: JSON.stringify({ prompt: 'say exactly: x' }),
      });
      return new URL(((await answer.json()) as Started).streamUrl).origin;
    };
    expect(await ask(behind)).toBe('https://agents.example.com');
    expect(await ask(here())).toBe(here().url);
    await behind.stop();
  });

  it('refuses more than the manifest allows in a minute', async () => {
    const statuses: number[] = [];
    let last = await invoke('often');
    for (let i = 0; i < 3; i++) {
      statuses.push(last.status);
      last = await invoke('often');
    }
    expect(statuses.slice(0, 2)).toEqual([202, 202]);
    expect(last).toMatchObject({ status: 429, body: { code: 'RATE_LIMIT_EXCEEDED' }, retryAfter: expect.any(String) });
  });

  it('is nobody else’s stream', async () => {
    const { body } = await invoke('write_text', { prompt: 'say exactly: mine' });
    const status = async (path: string, who = tokenFor({ sub: 'bob', scope: 'capabilities admin' })): Promise<number> =>
      (await fetch(here().url + path, { headers: { Authorization: `Bearer ${who}` } })).status;
    expect(await status(`/events?stream=${body.streamId}`)).toBe(404);
    expect(await status(`/events/stream/${body.streamId}`)).toBe(404);
    expect(await status('/events/stream/nonsense')).toBe(404);
    expect(await status(`/events?stream=${body.streamId}&channels=a`)).toBe(400);
  });

  it('resumes behind any event, is 204 at its end and tells of a position that is none', async () => {
    const { body } = await invoke('write_text', { prompt: 'long answer 20' });
    const all = await whole(here(), `/events?stream=${body.streamId}`);
    const from = async (id: string): Promise<RawStream> => {
      const stream = new RawStream(there().port, `/events?stream=${body.streamId}`, {
        Authorization: `Bearer ${token}`,
        'Last-Event-ID': id,
      });
      await eventually(() => stream.status === 204 || stream.body.includes('"final":true'));
      stream.close();
      return stream;
    };
    const middle = all[7] as Event;
    const rest = await from(middle.id);
    expect(rest.frames.filter((frame) => frame.includes('data: '))).toHaveLength(all.length - 8);
    expect((await from(all.at(-1)?.id as string)).status).toBe(204);
    for (const [id, reason] of [
      ['nonsense', 'unknown_id'],
      ['resp-0193e4a0-0000-7000-8000-0fff00000000', 'ahead_of_head'],
    ]) {
      const told = await from(id as string);
      expect(told.frames[1]).toContain(`"reason":"${reason}"`);
      expect(told.frames).toHaveLength(all.length + 2);
    }
  });

  it('brings an EventSource to its end although it is cut three times', async () => {
    const { body } = await invoke('write_text', { prompt: 'long answer 300' });
    const seen: number[] = [];
    let final = false;
    const source = new EventSource(body.streamUrl);
    source.addEventListener('capability_response', ({ data }) => {
      const { metadata } = JSON.parse(data) as Event;
      seen.push(metadata.sequence);
      if (metadata.final) {
        final = true;
        source.close();
      }
    });
    const streams = (here().gateway as unknown as { streams: Set<{ drain(ms: number): void }> }).streams;
    for (const after of [30, 90, 150]) {
      await eventually(() => seen.length >= after);
      expect(final).toBe(false);
      for (const stream of streams) stream.drain(1);
    }
    await eventually(() => final);
    expect(seen).toEqual(Array.from({ length: seen.length }, (_, i) => i + 1));
    expect(seen.length).toBeGreaterThan(200);
  });

  it('shows its agents without secrets', async () => {
    const get = async (path: string): Promise<unknown> =>
      (await fetch(here().url + path, { headers: { Authorization: `Bearer ${token}` } })).json();
    const { agents } = (await get('/agents')) as { agents: { name: string }[] };
    expect(agents.map(({ name }) => name).sort()).toEqual(['busy', 'limited', 'writer']);
    expect(await get('/agents/writer')).toMatchObject({
      name: 'writer',
      uri: 'agent://default/writer',
      capabilities: expect.arrayContaining([
        expect.objectContaining({ name: 'look_up', qualifiedName: 'writer.look_up' }),
      ]),
    });
    expect(await get('/agents/nobody')).toMatchObject({ code: 'NOT_FOUND' });
  });
});
