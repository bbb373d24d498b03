import { AgentGate } from '../../../src/agents/agent-gate.ts';
import { Board } from '../../../src/limits/board.ts';
import type { Agent } from '../../../src/manifests/agent.ts';
import { Catalogue } from '../../../src/manifests/catalogue.ts';
import { readStoredForm } from '../../../src/protocols/ossa/event.ts';
import { type ReplicaStatus, StatusReports } from '../../../src/protocols/ossa/status-reports.ts';
import { MemoryLog } from '../../../src/streams/memory-log.ts';

const agent = {
  kind: 'Agent',
  name: 'a',
  uri: 'agent://default/a',
  sse: { enabled: false, endpoint: '/events', channels: [] },
  ...{ publishes: [], subscribes: [], capabilities: [{ name: 'c', scopes: [] }], tools: [] },
} as unknown as Agent;

describe('reports of the status', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('come every five seconds, count the uptime from the load, and at once when the health changes', async () => {
    const log = new MemoryLog({ limitsOf: () => ({ events: 100, ageMs: 300_000 }) });
    let failing = false;
    let delivered = 0;
    const reports = new StatusReports({
      board: new Board<ReplicaStatus>({ name: 'status', replica: 'me', freshMs: 15_000 }),
      catalogue: () => catalogue,
      gate: new AgentGate({ take: async () => ({ allowed: true }) }),
      log,
      delivered: () => delivered,
      health: { hasTool: () => true, isFailing: () => failing },
      failed: (error) => {
        throw error;
      },
    });
    const seen: number[] = [];
    reports.listen(({ throughput }) => seen.push(throughput));
    const told = async (): Promise<{ status: string; uptime: number }[]> =>
      ((await log.tails(0, ['agent.status'], () => 100)).channels.get('agent.status')?.events ?? [])
        .map(({ data }) => readStoredForm(data))
        .filter(({ type }) => type === 'status')
        .map(({ payload }) => JSON.parse(payload) as { status: string; uptime: number });
    await jest.advanceTimersByTimeAsync(4_999);
    expect(seen).toEqual([]);
    delivered = 50;
    await jest.advanceTimersByTimeAsync(1);
    expect(seen).toEqual([10]);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(seen).toEqual([10, 0, 0]);
    expect((await told()).map(({ uptime }) => uptime)).toEqual([5, 10, 15]);
    failing = true;
    await jest.advanceTimersByTimeAsync(1_000);
    expect((await told()).at(-1)).toMatchObject({ status: 'unhealthy', uptime: 16 });
    reports.close();
    await jest.advanceTimersByTimeAsync(20_000);
    expect(await told()).toHaveLength(4);
  });
  const catalogue = new Catalogue([agent]);
});
