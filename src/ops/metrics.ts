import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { HubStats } from '../streams/hub.ts';
import type { ObserveStore, PartitionHealth } from '../streams/log.ts';

export interface MetricsSources {
  readonly hub: () => HubStats;
  readonly store: () => readonly PartitionHealth[];
  readonly connections: () => number;
  /** Why streams end. */
  readonly closeReasons: readonly string[];
}

const FAST = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

/** What Prometheus reads. One registry per gateway: several may live in one process. */
export class Metrics {
  readonly registry = new Registry();
  /** The answer time of the store; wired into the log, which is made before the sources are there. */
  readonly observeStore: ObserveStore;
  private readonly publishedTotal: Counter;
  private readonly publishSeconds: Histogram;
  private readonly closedTotal: Counter;

  constructor() {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.publishedTotal = new Counter({
      name: 'sluice_events_published_total',
      help: 'Events that were accepted from publishers.',
      registers,
    });
    this.publishSeconds = new Histogram({
      name: 'sluice_publish_seconds',
      help: 'From reading a publish request to its acknowledgement.',
      buckets: FAST,
      registers,
    });
    this.closedTotal = new Counter({
      name: 'sluice_streams_closed_total',
      help: 'Streams that ended, by the reason.',
      labelNames: ['reason'],
      registers,
    });
    const storeSeconds = new Histogram({
      name: 'sluice_store_seconds',
      help: 'Round trips to Redis, by what was asked.',
      labelNames: ['operation'],
      buckets: FAST,
      registers,
    });
    this.observeStore = (operation, ms) => storeSeconds.observe({ operation }, ms / 1_000);
  }

  published(events: number, seconds: number): void {
    this.publishedTotal.inc(events);
    this.publishSeconds.observe(seconds);
  }

  closed(reason: string): void {
    this.closedTotal.inc({ reason });
  }

  /** What is counted elsewhere is asked for when it is read. */
  watch({ hub, store, connections, closeReasons }: MetricsSources): void {
    // A counter that appears with its first count never shows that count as a change.
    for (const reason of closeReasons) this.closedTotal.inc({ reason }, 0);
    this.gauge('sluice_connections', 'Open event streams.', connections);
    this.gauge('sluice_followers_live', 'Streams that are level with the store.', () => hub().live);
    this.counters(
      'sluice_events_delivered_total',
      'Events sent to streams, by where they came from.',
      'source',
      () => hub().delivered,
    );
    this.counters(
      'sluice_resyncs_total',
      'Notices that a position no longer held, by the reason.',
      'reason',
      () => hub().resyncs,
    );
    this.counters('sluice_gaps_total', 'Events that did not arrive on a live feed; should stay 0.', undefined, () => ({
      '': hub().gaps,
    }));
    const partitions = (value: (health: PartitionHealth) => number) => (): Record<string, number> =>
      Object.fromEntries(store().map((health, i) => [String(i), value(health)]));
    this.gauges(
      'sluice_store_up',
      'Whether the store answers, by partition.',
      'partition',
      partitions(({ up }) => Number(up)),
    );
    this.gauges(
      'sluice_mark_age_seconds',
      'Since a mark came back from the store, by partition; -1 if none ever has.',
      'partition',
      partitions(({ markAgeMs }) => (markAgeMs === undefined ? -1 : markAgeMs / 1_000)),
    );
  }

  private gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(value());
      },
    });
  }

  private gauges(name: string, help: string, label: string, values: () => Readonly<Record<string, number>>): void {
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.registry],
      collect() {
        for (const [key, value] of Object.entries(values())) this.set({ [label]: key }, value);
      },
    });
  }

  private counters(
    name: string,
    help: string,
    label: string | undefined,
    values: () => Readonly<Record<string, number>>,
  ): void {
    new Counter({
      name,
      help,
      labelNames: label ? [label] : [],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const [key, value] of Object.entries(values())) this.inc(label ? { [label]: key } : {}, value);
      },
    });
  }
}
