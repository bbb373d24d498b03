import { eventually } from '../streams/logs.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const MANIFEST = `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: listener, version: 1.0.0 }
spec:
  role: You listen.
  transport: { sse: { channels: [content.published, content.removed] } }
  capabilities: [note]
  messaging:
    subscribes:
      - { channel: content.published, handler: note, filter: { fields: { kind: news }, expression: 'data.i != 4 && channel.startsWith("content")' }, maxConcurrency: 1 }
runtime: { bindings: { note: { tool: count } } }
`;

describe.each(['memory', 'redis'])('what an agent subscribes to, on %s', (store) => {
  let directory: TestDirectory;
  let redis: RunningRedis | undefined;
  let gateways: RunningGateway[];
  const calls: unknown[] = [];
  let running = 0;
  let most = 0;

  beforeAll(async () => {
    directory = makeDirectory();
    directory.write('a.ossa.yaml', MANIFEST);
    redis = store === 'redis' ? await startRedis() : undefined;
    const env = { SLUICE_MANIFESTS: directory.path, ...(redis && { REDIS_URL: redis.url }) };
    gateways = [await startGateway(env), ...(redis ? [await startGateway(env)] : [])];
    for (const { gateway } of gateways) {
      const tool = {
        name: 'count',
        description: '',
        inputSchema: { type: 'object' },
        source: { kind: 'module', name: 'test' } as const,
        timeoutMs: 0,
        concurrency: 0,
        approval: 'never' as const,
        call: async (input: unknown) => {
          most = Math.max(most, ++running);
          calls.push(input);
          await new Promise((resolve) => setTimeout(resolve, 5));
          running--;
          return { content: [], isError: false };
        },
      };
      gateway.toolbox.registry.add({ source: tool.source, concurrency: 0, tools: () => [tool], onChange: () => {} });
    }
    await eventually(() => gateways.every(({ gateway }) => gateway.hub.loaded && gateway.hub.stats().live > 0));
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await redis?.stop();
    directory.remove();
  });

  const publish = async (data: unknown): Promise<void> => {
    await fetch(`${gateways[0]?.url}/events`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenFor()}` },
      body: JSON.stringify({ channel: 'content.published', data }),
    });
  };

  it('starts its handler once for every event that passes the filter, in order and no more than it may at once', async () => {
    for (let i = 0; i < 12; i++) await publish({ i, kind: i % 3 === 0 ? 'gossip' : 'news' });
    const wanted = Array.from({ length: 12 }, (_, i) => i).filter((i) => i % 3 !== 0 && i !== 4);
    await eventually(() => calls.length >= wanted.length);
    await publish({ i: 'last', kind: 'news' });
    await eventually(() => calls.length > wanted.length);
    const seen = calls.map((call) => (call as { i: unknown }).i);
    expect([...seen].sort((a, b) => Number(a) - Number(b))).toEqual([...wanted, 'last']);
    if (store === 'memory') {
      expect(seen).toEqual([...wanted, 'last']);
      expect(most).toBe(1);
    }
  });

  it('ends with the manifest', async () => {
    const before = calls.length;
    directory.write('a.ossa.yaml', MANIFEST.replace(/ {2}messaging:[\s\S]*?(?=runtime)/, ''));
    await eventually(() => gateways.every(({ gateway }) => gateway.manifests.current.subscriptions().length === 0));
    await publish({ i: 'late', kind: 'news' });
    expect(calls).toHaveLength(before);
  });
});
