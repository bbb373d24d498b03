import { eventually } from '../streams/logs.ts';
import { makeDirectory, type TestDirectory } from '../support/directory.ts';
import { type RunningGateway, startGateway, tokenFor } from '../support/gateway.ts';
import { RawStream } from '../support/raw-stream.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';

const MANIFESTS = `
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: worker, version: 1.0.0 }
spec:
  role: You work.
  capabilities: [work]
  constraints: { performance: { maxConcurrentRequests: 2 } }
---
apiVersion: ossa/v0.3.2
kind: Agent
metadata: { name: lame, version: 1.0.0 }
spec:
  role: You cannot work.
  capabilities: [limp]
runtime: { bindings: { limp: { tool: nothing_there } } }
`;

interface Reporting {
  readonly reports: { report(): Promise<void> };
}

describe.each(['memory', 'redis'])('the status of agents on %s', (store) => {
  let directory: TestDirectory;
  let redis: RunningRedis | undefined;
  let gateways: RunningGateway[];
  const token = tokenFor({ sub: 'ann', scope: 'capabilities' });

  beforeAll(async () => {
    directory = makeDirectory();
    directory.write('agents.ossa.yaml', MANIFESTS);
    redis = store === 'redis' ? await startRedis() : undefined;
    const env = { SLUICE_MANIFESTS: directory.path, ...(redis && { REDIS_URL: redis.url }) };
    gateways = [await startGateway(env), ...(redis ? [await startGateway(env)] : [])];
    await eventually(() => gateways.every(({ gateway }) => gateway.hub.loaded));
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await redis?.stop();
    directory.remove();
  });

  /** As if the time had come, on every replica. */
  const report = async (): Promise<void> => {
    for (const { gateway } of gateways) await (gateway as unknown as Reporting).reports.report();
  };
  const invoke = async (gateway: RunningGateway): Promise<void> => {
    const answer = await fetch(`${gateway.url}/capabilities/work`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify({ text: 'wait 600 seconds' }),
    });
    expect(answer.status).toBe(202);
  };

  it('is shown over all replicas, at once and with every report', async () => {
    const first = gateways[0] as RunningGateway;
    const streams = gateways.map(
      ({ port }) => new RawStream(port, '/agent-status', { Authorization: `Bearer ${token}` }),
    );
    await eventually(() => streams.every(({ frames }) => frames.length >= 1));
    expect(streams[0]?.head).toContain('text/event-stream');
    expect(streams[0]?.frames[0]).toMatch(
      /^retry: 3000\nevent: status\nid: status-[0-9a-f-]{36}\ndata: \{"type":"status"/,
    );
    for (let i = 0; i < 3; i++) await invoke(first);
    await report();
    await report();
    await eventually(() =>
      streams.every(({ frames }) => frames.at(-1)?.includes('"payload":{"activeAgents":1,"queueDepth":1,') ?? false),
    );
    for (const stream of streams) stream.close();
  });

  it('is published as two events a report, by one replica for all', async () => {
    const stream = new RawStream((gateways.at(-1) as RunningGateway).port, '/events?channels=agent.status', {
      Authorization: `Bearer ${token}`,
    });
    await eventually(() => stream.frames.length >= 1);
    await report();
    await eventually(() => stream.events.length >= 4);
    const events = stream.events.map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] as string));
    const of = (name: string): unknown[] =>
      events.slice(0, 4).filter(({ metadata }) => metadata.agentId === `agent://default/${name}`);
    expect(of('worker')).toMatchObject([
      { type: 'status', payload: { status: 'healthy', load: 1, uptime: expect.any(Number), channel: 'agent.status' } },
      { type: 'message', payload: { channel: 'agent.status', data: { status: 'healthy', load: 1 } } },
    ]);
    expect(of('lame')).toMatchObject([
      { type: 'status', payload: { status: 'unhealthy' } },
      { type: 'message', payload: { data: { status: 'unhealthy', agent: 'agent://default/lame' } } },
    ]);
    stream.close();
  });

  it('is told at once when the health of an agent changes', async () => {
    const stream = new RawStream((gateways[0] as RunningGateway).port, '/events?channels=agent.status', {
      Authorization: `Bearer ${token}`,
    });
    await eventually(() => stream.frames.length >= 1);
    const lame = (): string | undefined =>
      stream.events.filter((frame) => frame.includes('"agentId":"agent://default/lame"')).at(-1);
    const call = async () => ({ content: [], isError: false });
    const source = { kind: 'module', name: 'test' } as const;
    const rules = { timeoutMs: 0, concurrency: 0, approval: 'never' as const };
    const tool = { name: 'nothing_there', description: '', inputSchema: { type: 'object' }, source, ...rules, call };
    const begin = performance.now();
    for (const { gateway } of gateways) {
      gateway.toolbox.registry.add({ source, concurrency: 0, tools: () => [tool], onChange: () => {} });
    }
    await eventually(() => lame()?.includes('"healthy"') ?? false);
    expect(performance.now() - begin).toBeLessThan(4_000); // the next report would have come later
    stream.close();
  });

  it('needs a token', async () => {
    expect((await fetch(`${gateways[0]?.url}/agent-status`)).status).toBe(401);
  });
});

describe('what the gateway says of itself', () => {
  interface Speaking {
    readonly gatewayReports: { report(): Promise<void> };
  }

  it('is said to administrators who follow, and to nobody else', async () => {
    const gateway = await startGateway();
    const report = (): Promise<void> => (gateway.gateway as unknown as Speaking).gatewayReports.report();
    await eventually(() => gateway.gateway.hub.loaded);
    await report();
    expect(await gateway.gateway.log.names('#')).toEqual([]);
    const headers = { Authorization: `Bearer ${tokenFor({ scope: 'admin' })}` };
    const stream = new RawStream(gateway.port, '/events?channels=gateway.stats,gateway.presence', headers);
    const other = new RawStream(gateway.port, '/events?channels=news', headers);
    await eventually(() => [stream, other].every(({ frames }) => frames.length === 1));
    await report();
    await eventually(() => stream.events.length === 2);
    expect(stream.events[0]).toContain('"channel":"gateway.stats","data":{"replicas":1,"connections":2,');
    expect(stream.events[1]).toContain('"subscribers":{"gateway.stats":1,"gateway.presence":1,"news":1}');
    other.close();
    await eventually(() => gateway.gateway.hub.stats().followers === 1);
    await report();
    await eventually(() => stream.events.length === 4);
    expect(stream.events[3]).toContain('"subscribers":{"news":0}');
    stream.close();
    await gateway.stop();
  });
});
