import { eventually } from '../streams/logs.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { RawStream } from '../support/raw-stream.ts';

const agent = (name: string, sse: string, more = ''): string => `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: ${name}, version: 1.0.0 }
spec:
  role: Test.
  transport:
    sse: ${sse}
${more}`;

describe('a gateway with manifests', () => {
  let directory: TestDirectory;
  let gateway: RunningGateway;
  /** What it logs. */
  const lines: string[] = [];
  const token = tokenFor({ sub: 'ann', subscribe: ['content.*', 'other.*', 'quick', 'gateway.#'], scope: 'admin' });
  const limited = tokenFor({ sub: 'bob', subscribe: ['content.published', 'gateway.#', '#'] });

  beforeAll(async () => {
    directory = makeDirectory();
    const published = `  messaging:
    publishes:
      - channel: content.published
        schema: { type: object, properties: { contentId: { type: string } }, required: [contentId] }
`;
    directory.write(
      'a.ossa.yaml',
      agent(
        'a',
        '{ channels: [content.published, content.removed], reconnect: { retry: 5000 }, buffer: { maxSize: 5 } }',
        published,
      ),
    );
    directory.write(
      'b.ossa.yaml',
      agent(
        'b',
        '{ endpoint: /b/stream, channels: [other.one, quick], reconnect: { retry: 1234 }, heartbeat: { interval: 1 } }',
      ),
    );
    const env = { SLUICE_MANIFESTS: directory.path, SLUICE_CHANNELS_ALLOW_UNDECLARED: 'false' };
    gateway = await startGateway(env, { write: (line) => void lines.push(line) });
    await eventually(() => gateway.gateway.hub.loaded);
  });
  afterAll(async () => {
    await gateway.stop();
    directory.remove();
  });

  const open = async (path: string, who = token, headers: Record<string, string> = {}): Promise<RawStream> => {
    const stream = new RawStream(gateway.port, path, { Authorization: `Bearer ${who}`, ...headers });
    await eventually(() => stream.frames.length > 0 || stream.status >= 400);
    return stream;
  };
  const publish = async (
    channel: string,
    data: unknown,
    path = '/events',
  ): Promise<{ status: number; body: { id?: string; code?: string; message?: string } }> => {
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenFor()}` },
      body: JSON.stringify({ channel, data }),
    });
    return { status: answer.status, body: (await answer.json()) as { id?: string } };
  };

  it('follows every declared channel that the token may see, when none is named', async () => {
    const all = await open('/events');
    expect(all.frames[0]).toContain('retry: 5000');
    expect(all.frames[0]).toContain('"channels":["content.published","content.removed"]');
    const some = await open('/events', limited);
    expect(some.frames[0]).toContain('"channels":["content.published","content.removed"]');
    const none = await open('/events', tokenFor({ subscribe: ['else'] }));
    expect(none.status).toBe(403);
    for (const stream of [all, some, none]) stream.close();
  });

  it('serves the endpoints of manifests, with what they say', async () => {
    const stream = await open('/b/stream');
    expect(stream.frames[0]).toContain('retry: 1234');
    expect(stream.frames[0]).toContain('"channels":["other.one","quick"]');
    expect((await publish('quick', 1, '/b/stream')).status).toBe(201);
    await eventually(() => stream.events.length === 1);
    expect(stream.events[0]).toContain('"agentId":"agent://default/b"');
    expect((await open('/b/other')).status).toBe(404);
    await eventually(() => stream.frames.some((frame) => frame.startsWith(': heartbeat - '))); // every second, not every 30
    stream.close();
  });

  it('checks what is published', async () => {
    expect((await publish('content.published', { contentId: 'x' })).status).toBe(201);
    expect(await publish('content.published', { contentId: 7 })).toMatchObject({
      status: 400,
      body: {
        code: 'PROTOCOL_ERROR',
        message: '/data does not fit the schema of content.published: contentId must be string.',
      },
    });
    expect(await publish('content.unheard', 1)).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
  });

  it('keeps as much of a channel as its manifest says', async () => {
    const first = (await publish('content.removed', 0)).body.id as string;
    for (let i = 1; i <= 7; i++) await publish('content.removed', i);
    const stream = await open('/events?channels=content.removed', token, { 'Last-Event-ID': first });
    await eventually(() => stream.events.length === 5);
    expect(stream.body).toContain('"reason":"expired"');
    stream.close();
  });

  it('lists its channels as far as the token may see them', async () => {
    const get = async (who: string): Promise<{ name: string; events: number; subscribers: number }[]> => {
      const answer = await fetch(`${gateway.url}/channels`, { headers: { Authorization: `Bearer ${who}` } });
      return ((await answer.json()) as { channels: { name: string; events: number; subscribers: number }[] }).channels;
    };
    const stream = await open('/events?channels=content.%2A');
    const channels = await get(token);
    expect(channels.map(({ name }) => name)).toEqual(['content.published', 'content.removed', 'other.one', 'quick']);
    expect(channels[1]).toMatchObject({
      agents: ['agent://default/a'],
      events: 5,
      subscribers: 1,
      lastId: expect.stringMatching(/^msg-/),
    });
    expect((await get(tokenFor({ subscribe: ['quick'] }))).map(({ name }) => name)).toEqual(['quick']);
    stream.close();
  });

  it('shows what the gateway says of itself to administrators alone', async () => {
    const admin = await open('/events?channels=gateway.manifests,gateway.%2A');
    expect(admin.status).toBe(200);
    expect((await open('/events?channels=gateway.manifests', limited)).status).toBe(403);
    const curious = await open('/events?channels=%23', limited);
    directory.write('c.ossa.yaml', agent('c', '{ channels: [content.new] }'));
    // Between the reports that come every two seconds.
    await eventually(() => admin.events.some((text) => text.includes('"added":[{"kind":"Agent","name":"c"}]')));
    expect((await publish('content.new', 1)).status).toBe(201);
    await eventually(() => curious.body.includes('content.new'));
    expect(curious.body).not.toContain('gateway.manifests');
    directory.write('c.ossa.yaml', 'apiVersion: nonsense');
    await eventually(() => admin.events.length >= 2);
    expect(admin.events.at(-1)).toContain('"kept":[{"kind":"Agent","name":"c"}]');
    expect(lines.join('')).toContain('c.ossa.yaml:1:1 ');
    const metrics = await (
      await fetch(`${gateway.url}/metrics`, { headers: { Authorization: `Bearer ${token}` } })
    ).text();
    expect(metrics).toMatch(/^sluice_manifests_kept 1$/m);
    expect(metrics).toMatch(/^sluice_manifest_errors [1-9]/m);
    expect((await publish('content.new', 2)).status).toBe(201);
    for (const stream of [admin, curious]) stream.close();
  });

  it('reads them at once when it is told to; agents share an endpoint', async () => {
    directory.write('d.ossa.yaml', agent('d', '{ channels: [content.drafted] }'));
    await gateway.gateway.reload(); // what SIGHUP does; nobody has waited for the folder to be quiet
    expect(gateway.gateway.manifests.current.agent('d')).toBeDefined();
    const stream = await open('/events');
    expect(stream.frames[0]).toContain(
      '"channels":["content.published","content.removed","content.new","content.drafted"]',
    );
    stream.close();
  });
});
