import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { HubStats } from '../streams/hub.ts';
import type { ObserveStore, PartitionHealth } from '../streams/log.ts';

/** What happened to jobs on this replica. */
export interface JobCounts {
  started(kind: string): void;
  ended(kind: string, state: string): void;
  first(kind: string, ms: number): void;
  batch(events: number): void;
  fenced(kind: string): void;
  restored(kind: string): void;
  reaped(kind: string): void;
}

/** What became of calls of tools. */
export interface ToolCounts {
  called(tool: string, outcome: string, seconds: number): void;
}

/** What became of questions to models. */
export interface ModelCounts {
  firstEvent(backend: string, ms: number): void;
  ended(
    backend: string,
    outcome: string,
    ms: number,
    usage: { readonly input: number; readonly output: number } | undefined,
  ): void;
  fellBack(from: string, to: string, code: string): void;
}

/** What happened to sessions of environments on this replica. */
export interface OrsCounts {
  setUp(environment: string, seconds: number, ok: boolean): void;
  called(environment: string, outcome: string, seconds: number): void;
  tornDown(environment: string, seconds: number, ok: boolean): void;
  ended(environment: string, reason: string): void;
}

export interface MetricsSources {
  readonly hub: () => HubStats;
  readonly store: () => readonly PartitionHealth[];
  readonly connections: () => number;
  /** Running jobs of this replica by kind; those that wait for an answer apart. */
  readonly jobs: () => ReadonlyMap<string, { readonly running: number; readonly waiting: number }>;
  /** Sessions of this replica by environment and state. */
  readonly sessions: () => ReadonlyMap<string, Readonly<Record<string, number>>>;
  readonly mcpServers: () => readonly { readonly name: string; readonly state: string; readonly restarts: number }[];
  /** Why streams end. */
  readonly closeReasons: readonly string[];
}

const FAST = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];

const SLOW = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** What Prometheus reads. One registry per gateway: several may live in one process. */
export class Metrics {
  readonly registry = new Registry();
  /** The answer time of the store; wired into the log, which is made before the sources are there. */
  readonly observeStore: ObserveStore;
  readonly jobs: JobCounts;
  readonly tools: ToolCounts;
  readonly models: ModelCounts;
  readonly ors: OrsCounts;
  private readonly publishedTotal: Counter;
  private readonly publishSeconds: Histogram;
  private readonly closedTotal: Counter;
  private readonly manifestErrors: Gauge;
  private readonly manifestsKept: Gauge;

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
    this.manifestErrors = new Gauge({
      name: 'sluice_manifest_errors',
      help: 'What is wrong with the manifests as they stand there.',
      registers,
    });
    this.manifestsKept = new Gauge({
      name: 'sluice_manifests_kept',
      help: 'Manifests that are served as they were before a change that cannot be.',
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
    this.jobs = this.jobCounts();
    this.tools = this.toolCounts();
    this.models = this.modelCounts();
    this.ors = this.orsCounts();
  }

  /** Events accepted from publishers so far. */
  publishedEvents = 0;

  published(events: number, seconds: number): void {
    this.publishedEvents += events;
    this.publishedTotal.inc(events);
    this.publishSeconds.observe(seconds);
  }

  closed(reason: string): void {
    this.closedTotal.inc({ reason });
  }

  private jobCounts(): JobCounts {
    const registers = [this.registry];
    const counter = (name: string, help: string, labelNames: string[] = ['kind']): Counter =>
      new Counter({ name, help, labelNames, registers });
    const started = counter('sluice_jobs_started_total', 'Jobs that this replica has begun, by kind.');
    const ended = counter('sluice_jobs_ended_total', 'Jobs that this replica has ended, by kind and state.', [
      'kind',
      'state',
    ]);
    const reaped = counter('sluice_jobs_reaped_total', 'Jobs of lost replicas that this one has ended, by kind.');
    const fenced = counter('sluice_jobs_fenced_total', 'Jobs that were taken away from this replica, by kind.');
    const restored = counter('sluice_jobs_restored_total', 'Jobs given again to a store that lost them, by kind.');
    const first = new Histogram({
      name: 'sluice_job_first_event_seconds',
      help: 'From the request for a job to its first stored event, by kind.',
      labelNames: ['kind'],
      buckets: FAST,
      registers,
    });
    const batch = new Histogram({
      name: 'sluice_job_batch_events',
      help: 'Events of a job that were stored in one step.',
      buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500],
      registers,
    });
    return {
      started: (kind) => started.inc({ kind }),
      ended: (kind, state) => ended.inc({ kind, state }),
      first: (kind, ms) => first.observe({ kind }, ms / 1_000),
      batch: (events) => batch.observe(events),
      fenced: (kind) => fenced.inc({ kind }),
      restored: (kind) => restored.inc({ kind }),
      reaped: (kind) => reaped.inc({ kind }),
    };
  }

  private toolCounts(): ToolCounts {
    const registers = [this.registry];
    const calls = new Counter({
      name: 'sluice_tool_calls_total',
      help: 'Calls of tools, by tool and outcome.',
      labelNames: ['tool', 'outcome'],
      registers,
    });
    const seconds = new Histogram({
      name: 'sluice_tool_seconds',
      help: 'How long calls of tools took, by tool, those that failed too.',
      labelNames: ['tool'],
      buckets: SLOW,
      registers,
    });
    return {
      called: (tool, outcome, duration) => {
        calls.inc({ tool, outcome });
        seconds.observe({ tool }, duration);
      },
    };
  }

  private modelCounts(): ModelCounts {
    const registers = [this.registry];
    const histogram = (name: string, help: string): Histogram =>
      new Histogram({ name, help, labelNames: ['backend'], buckets: SLOW, registers });
    const counter = (name: string, help: string, labelNames: string[]): Counter =>
      new Counter({ name, help, labelNames, registers });
    const requests = counter('sluice_model_requests_total', 'Answers of models, by backend and outcome.', [
      'backend',
      'outcome',
    ]);
    const tokens = counter('sluice_model_tokens_total', 'Tokens that backends have counted, by direction.', [
      'backend',
      'direction',
    ]);
    const fallbacks = counter('sluice_model_fallbacks_total', 'Models that could not answer, by the reason.', [
      'reason',
    ]);
    const first = histogram('sluice_model_first_event_seconds', 'From the question to the first event of the answer.');
    const whole = histogram('sluice_model_seconds', 'From the question to the end of the answer.');
    return {
      firstEvent: (backend, ms) => first.observe({ backend }, ms / 1_000),
      ended: (backend, outcome, ms, usage) => {
        requests.inc({ backend, outcome });
        whole.observe({ backend }, ms / 1_000);
        if (usage) {
          tokens.inc({ backend, direction: 'input' }, usage.input);
          tokens.inc({ backend, direction: 'output' }, usage.output);
        }
      },
      fellBack: (_from, _to, reason) => fallbacks.inc({ reason }),
    };
  }

  private orsCounts(): OrsCounts {
    const registers = [this.registry];
    const labelNames = ['environment', 'outcome'];
    const histogram = (name: string, help: string, labels: string[] = labelNames, buckets = SLOW): Histogram =>
      new Histogram({ name, help, labelNames: labels, buckets, registers });
    const setUp = histogram('sluice_ors_setup_seconds', 'How long setups took, by environment and outcome.');
    const tornDown = histogram('sluice_ors_teardown_seconds', 'How long teardowns took, by environment and outcome.');
    const called = histogram(
      'sluice_ors_call_seconds',
      'How long calls of tools took, by environment and outcome; the wait for the setup is not counted.',
      labelNames,
      [0.0005, 0.001, 0.0025, ...SLOW],
    );
    const ended = new Counter({
      name: 'sluice_ors_sessions_ended_total',
      help: 'Sessions that ended on this replica, by environment and reason.',
      labelNames: ['environment', 'reason'],
      registers,
    });
    const word = (ok: boolean): string => (ok ? 'ok' : 'error');
    return {
      setUp: (environment, seconds, ok) => setUp.observe({ environment, outcome: word(ok) }, seconds),
      tornDown: (environment, seconds, ok) => tornDown.observe({ environment, outcome: word(ok) }, seconds),
      called: (environment, outcome, seconds) => called.observe({ environment, outcome }, seconds),
      ended: (environment, reason) => ended.inc({ environment, reason }),
    };
  }

  /** After every load: what is served as it was before, because what stands there now cannot be. */
  manifests({ kept, errors }: { readonly kept: number; readonly errors: number }): void {
    this.manifestsKept.set(kept);
    this.manifestErrors.set(errors);
  }

  /** What is counted elsewhere is asked for when it is read. */
  watch({ hub, store, connections, jobs, sessions, mcpServers, closeReasons }: MetricsSources): void {
    // A counter that appears with its first count never shows that count as a change.
    for (const reason of closeReasons) this.closedTotal.inc({ reason }, 0);
    this.gauge('sluice_connections', 'Open event streams.', connections);
    new Gauge({
      name: 'sluice_jobs',
      help: 'Jobs of this replica that are not over, by kind; waiting: for an answer to a question.',
      labelNames: ['kind', 'state'],
      registers: [this.registry],
      collect() {
        for (const [kind, { running, waiting }] of jobs()) {
          this.set({ kind, state: 'running' }, running);
          this.set({ kind, state: 'waiting' }, waiting);
        }
      },
    });
    new Gauge({
      name: 'sluice_ors_sessions',
      help: 'Sessions of this replica, by environment and state.',
      labelNames: ['environment', 'state'],
      registers: [this.registry],
      collect() {
        for (const [environment, states] of sessions()) {
          for (const [state, count] of Object.entries(states)) this.set({ environment, state }, count);
        }
      },
    });
    this.gauges('sluice_mcp_server_up', 'Whether an MCP server is ready, by server.', 'server', () =>
      Object.fromEntries(mcpServers().map(({ name, state }) => [name, Number(state === 'ready')])),
    );
    this.counters('sluice_mcp_server_restarts_total', 'How often an MCP server was started again.', 'server', () =>
      Object.fromEntries(mcpServers().map(({ name, restarts }) => [name, restarts])),
    );
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
        this.reset(); // what is gone has no value
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
