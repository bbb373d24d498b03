import type { Board } from '../../limits/board.ts';
import type { Hub } from '../../streams/hub.ts';
import type { StreamLog } from '../../streams/log.ts';
import { storedForm } from './event.ts';

/** What a replica has counted. */
export interface ReplicaStats {
  readonly connections: number;
  readonly eventsIn: number;
  readonly eventsOut: number;
  /** Deliveries that came from memory or from the store, because the client had been away. */
  readonly replayed: number;
  readonly resyncs: number;
  readonly latencyMs: number;
  readonly latencySamples: number;
  readonly jobs: Readonly<Record<'running' | 'waiting', number>>;
  /** Followers by channel. */
  readonly presence: Readonly<Record<string, number>>;
}

export interface GatewayReportsOptions {
  readonly board: Board<ReplicaStats>;
  readonly hub: Hub;
  readonly log: StreamLog;
  readonly agentId: string;
  readonly connections: () => number;
  /** Events accepted from publishers so far. */
  readonly published: () => number;
  readonly jobs: () => ReadonlyMap<string, { readonly running: number; readonly waiting: number }>;
  readonly failed: (error: unknown) => void;
}

const EVERY_MS = 2_000;
export const STATS = 'gateway.stats';
export const PRESENCE = 'gateway.presence';

const round = (value: number): number => Math.round(value * 100) / 100;
const sum = <T>(parts: readonly T[], of: (part: T) => number): number => parts.reduce((all, part) => all + of(part), 0);

/**
 * What the gateway says of itself, over all replicas, to administrators who follow: numbers every two seconds, and who
 * follows what whenever that changes. While nobody follows nothing is published.
 */
export class GatewayReports {
  private readonly options: GatewayReportsOptions;
  private readonly timer: NodeJS.Timeout;
  private before = { at: performance.now(), published: 0, delivered: 0, replayed: 0, resyncs: 0, sumMs: 0, samples: 0 };
  private shown = new Map<string, number>();
  private others: readonly ReplicaStats[] = [];

  constructor(options: GatewayReportsOptions) {
    this.options = options;
    this.timer = setInterval(() => void this.report(), EVERY_MS).unref();
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Followers of a channel on the other replicas, as of their last report. */
  elsewhere(channel: string): number {
    return sum(this.others, ({ presence }) => presence[channel] ?? 0);
  }

  /** Never rejects. */
  async report(): Promise<void> {
    const { board, hub, failed } = this.options;
    try {
      const parts = await board.exchange(this.own());
      this.others = parts.slice(1);
      if (hub.followersOf(STATS) > 0 && (await board.speaks('stats', EVERY_MS * 1.5))) await this.tellStats(parts);
      if (hub.followersOf(PRESENCE) > 0 && (await board.speaks('presence', EVERY_MS * 1.5)))
        await this.tellPresence(parts);
    } catch (error) {
      failed(error);
    }
  }

  private own(): ReplicaStats {
    const { hub, connections, published, jobs } = this.options;
    const { delivered, resyncs, latency } = hub.stats();
    const now = {
      at: performance.now(),
      published: published(),
      delivered: delivered.live + delivered.mirror + delivered.log,
      replayed: delivered.mirror + delivered.log,
      resyncs: sum(Object.values(resyncs), (count) => count),
      sumMs: latency.sumMs,
      samples: latency.samples,
    };
    const { before } = this;
    this.before = now;
    const seconds = Math.max(0.001, (now.at - before.at) / 1_000);
    const all = [...jobs().values()];
    return {
      connections: connections(),
      eventsIn: (now.published - before.published) / seconds,
      eventsOut: (now.delivered - before.delivered) / seconds,
      replayed: now.replayed - before.replayed,
      resyncs: now.resyncs - before.resyncs,
      latencyMs: now.sumMs - before.sumMs,
      latencySamples: now.samples - before.samples,
      jobs: { running: sum(all, ({ running }) => running), waiting: sum(all, ({ waiting }) => waiting) },
      presence: Object.fromEntries(hub.presence()),
    };
  }

  private async tellStats(parts: readonly ReplicaStats[]): Promise<void> {
    const samples = sum(parts, ({ latencySamples }) => latencySamples);
    await this.tell(STATS, {
      replicas: parts.length,
      connections: sum(parts, ({ connections }) => connections),
      eventsInPerSecond: round(sum(parts, ({ eventsIn }) => eventsIn)),
      eventsOutPerSecond: round(sum(parts, ({ eventsOut }) => eventsOut)),
      deliveryLatencyMs: samples === 0 ? null : round(sum(parts, ({ latencyMs }) => latencyMs) / samples),
      replayed: sum(parts, ({ replayed }) => replayed),
      resyncs: sum(parts, ({ resyncs }) => resyncs),
      jobs: { running: sum(parts, ({ jobs }) => jobs.running), waiting: sum(parts, ({ jobs }) => jobs.waiting) },
    });
  }

  private async tellPresence(parts: readonly ReplicaStats[]): Promise<void> {
    const now = new Map<string, number>();
    for (const { presence } of parts) {
      for (const [channel, count] of Object.entries(presence)) now.set(channel, (now.get(channel) ?? 0) + count);
    }
    const names = new Set([...now.keys(), ...this.shown.keys()]);
    const changed = [...names].filter((name) => (now.get(name) ?? 0) !== (this.shown.get(name) ?? 0));
    this.shown = now;
    if (changed.length === 0) return;
    await this.tell(PRESENCE, { subscribers: Object.fromEntries(changed.map((name) => [name, now.get(name) ?? 0])) });
  }

  private async tell(channel: string, data: unknown): Promise<void> {
    const { log, agentId } = this.options;
    await log.append([{ channel, data: storedForm({ type: 'message', channel, data, metadata: { agentId } }) }]);
  }
}
