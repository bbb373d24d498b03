import type { AgentGate } from '../../agents/agent-gate.ts';
import { type AgentHealth, type HealthFacts, healthOf } from '../../agents/agent-health.ts';
import type { Board } from '../../limits/board.ts';
import type { Agent } from '../../manifests/agent.ts';
import type { Catalogue } from '../../manifests/catalogue.ts';
import type { NewEvent, StreamLog } from '../../streams/log.ts';
import { storedForm } from './event.ts';

/** What a replica has at a moment. */
export interface ReplicaStatus {
  /** Requests that run, by agent. */
  readonly running: Readonly<Record<string, number>>;
  readonly waiting: number;
  /** Events delivered per second, over the last interval. */
  readonly throughput: number;
}

/** What all replicas have together. */
export interface Status {
  readonly activeAgents: number;
  readonly queueDepth: number;
  readonly throughput: number;
}

export interface StatusReportsOptions {
  readonly board: Board<ReplicaStatus>;
  readonly catalogue: () => Catalogue;
  readonly gate: AgentGate;
  readonly log: StreamLog;
  /** Events delivered so far. */
  readonly delivered: () => number;
  readonly health: HealthFacts;
  readonly failed: (error: unknown) => void;
  readonly everyMs?: number;
}

const EVERY_MS = 5_000;
/** A change of health is told at once, give or take this. */
const HEALTH_EVERY_MS = 1_000;
const CHANNEL = 'agent.status';

const sumOf = (statuses: readonly ReplicaStatus[]): { status: Status; running: Map<string, number> } => {
  const running = new Map<string, number>();
  for (const status of statuses) {
    for (const [agent, count] of Object.entries(status.running)) running.set(agent, (running.get(agent) ?? 0) + count);
  }
  return {
    running,
    status: {
      activeAgents: [...running.values()].filter((count) => count > 0).length,
      queueDepth: statuses.reduce((sum, { waiting }) => sum + waiting, 0),
      throughput: Math.round(statuses.reduce((sum, { throughput }) => sum + throughput, 0) * 100) / 100,
    },
  };
};

/** Two events a report: some clients listen to `status`, others to `message`. */
const eventsOf = (agent: Agent, status: AgentHealth, load: number, uptime: number): NewEvent[] => {
  const data = { status, load, uptime };
  const metadata = { agentId: agent.uri };
  const report = { type: 'status', channel: CHANNEL, data: { ...data, channel: CHANNEL }, metadata } as const;
  const message = { type: 'message', channel: CHANNEL, data: { agent: agent.uri, ...data }, metadata } as const;
  return [report, message].map((event) => ({ channel: CHANNEL, data: storedForm(event) }));
};

/** Says every few seconds how the agents are: to who follows /agent-status here, and on the channel agent.status. */
export class StatusReports {
  private readonly options: StatusReportsOptions;
  private readonly everyMs: number;
  private readonly listeners = new Set<(status: Status) => void>();
  private readonly timer: NodeJS.Timeout;
  private readonly loadedAt = new Map<string, number>();
  private readonly lastHealth = new Map<string, AgentHealth>();
  private lastDelivered = 0;
  private reportedAt = performance.now();
  private latest: Status = { activeAgents: 0, queueDepth: 0, throughput: 0 };

  constructor(options: StatusReportsOptions) {
    this.options = options;
    this.everyMs = options.everyMs ?? EVERY_MS;
    this.noteLoads();
    this.timer = setInterval(() => this.tick(), Math.min(this.everyMs, HEALTH_EVERY_MS)).unref();
  }

  /** The one of the last report. */
  get current(): Status {
    return this.latest;
  }

  listen(listener: (status: Status) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    clearInterval(this.timer);
    this.listeners.clear();
  }

  private tick(): void {
    const { catalogue, health } = this.options;
    this.noteLoads();
    const changed = catalogue()
      .agents()
      .some((agent) => (this.lastHealth.get(agent.name) ?? 'healthy') !== healthOf(agent, health));
    if (changed || performance.now() - this.reportedAt >= this.everyMs) void this.report();
  }

  /** Every replica keeps them, so that it makes no difference which one speaks for all. */
  private noteLoads(): void {
    const catalogue = this.options.catalogue();
    for (const name of this.loadedAt.keys()) if (!catalogue.agent(name)) this.loadedAt.delete(name);
    for (const { name } of catalogue.agents()) if (!this.loadedAt.has(name)) this.loadedAt.set(name, Date.now());
  }

  /** Never rejects. */
  async report(): Promise<void> {
    const { board, failed, catalogue, health } = this.options;
    for (const agent of catalogue().agents()) this.lastHealth.set(agent.name, healthOf(agent, health));
    try {
      const { status, running } = sumOf(await board.exchange(this.own()));
      this.latest = status;
      for (const listener of this.listeners) listener(status);
      await this.publish(running);
    } catch (error) {
      failed(error);
    }
  }

  private own(): ReplicaStatus {
    const { catalogue, gate, delivered } = this.options;
    const loads = catalogue()
      .agents()
      .map(({ name }) => [name, gate.load(name)] as const);
    const count = delivered();
    const now = performance.now();
    const seconds = Math.max(0.001, (now - this.reportedAt) / 1_000);
    const throughput = Math.max(0, (count - this.lastDelivered) / seconds);
    this.lastDelivered = count;
    this.reportedAt = now;
    return {
      running: Object.fromEntries(
        loads.filter(([, { running }]) => running > 0).map(([name, load]) => [name, load.running]),
      ),
      waiting: loads.reduce((sum, [, { waiting }]) => sum + waiting, 0),
      throughput,
    };
  }

  /** One replica speaks for all; the others stand by. */
  private async publish(running: ReadonlyMap<string, number>): Promise<void> {
    const { board, catalogue, log, health } = this.options;
    const agents = catalogue().agents();
    if (agents.length === 0 || !(await board.speaks('status', this.everyMs * 2.5))) return;
    const now = Date.now();
    const events = agents.flatMap((agent) => {
      const since = this.loadedAt.get(agent.name) ?? now;
      const state = this.lastHealth.get(agent.name) ?? healthOf(agent, health);
      const most = agent.maxConcurrentRequests;
      const load = most === undefined ? 0 : Math.min(1, (running.get(agent.name) ?? 0) / most);
      return eventsOf(agent, state, load, Math.floor((now - since) / 1_000));
    });
    await log.append(events);
  }
}
