import { MAX_IDEMPOTENCY_KEYS } from '../streams/log.ts';
import { Fifo } from './fifo.ts';
import type { Decision, JobEvent, JobFacts, JobRecord, JobState } from './job.ts';
import {
  type Appended,
  type Approved,
  type Batch,
  type BatchEnd,
  type Cancelled,
  type Command,
  type Created,
  type JobPage,
  type JobStore,
  LEASE_MS,
  MAX_INBOX,
  type NewJob,
  type Reaped,
  type StoreListener,
  type Watcher,
  type WholeJob,
} from './store.ts';

interface StoredJob extends Omit<JobFacts, 'about'> {
  owner: string;
  about: string;
  state: JobState;
  last: number;
  from: number;
  snapshot: string | undefined;
  cancel: string | undefined;
  approvals: Map<string, Decision | undefined> | undefined;
  events: JobEvent[];
  /** Once it is over. They are there from the beginning: what is added later costs an object of its own. */
  bytes: number | undefined;
  logUntil: number | undefined;
  until: number | undefined;
  whole: string | undefined;
}

const NOT_OVER = { bytes: undefined, logUntil: undefined, until: undefined, whole: undefined };

interface RememberedKey {
  readonly id: string;
  readonly fingerprint: string;
  readonly until: number;
}

const NONE: ReadonlyMap<string, undefined> = new Map();

const SWEEP_EVERY_MS = 60_000;
/** What jobs that are over may hold together; the oldest are forgotten first. */
const MAX_FINISHED_BYTES = 256 * 1024 * 1024;
/** What a job costs beside its events. */
const JOB_BYTES = 1_024;

export interface MemoryJobStoreOptions {
  readonly now?: () => number;
  readonly maxFinishedBytes?: number;
}

/** Longer ones are not worth the copy. */
const FLAT_LENGTH = 4_096;

/**
 * A text as one piece. The engine keeps what was put together from pieces as a tree of them, for as long as nobody reads
 * it: an id of 36 characters takes half a kilobyte then, and there may be hundreds of thousands of jobs.
 */
const flat = (text: string): string => (text.length > FLAT_LENGTH ? text : Buffer.from(text).toString());

/** Only what is stored: what a writer hands over also holds the bytes that streams were given, and would for as long. */
const bare = ({ seq, data, end }: JobEvent): JobEvent => (end ? { seq, data, end } : { seq, data });

/** The embedded store: the same rules as the Lua scripts, in this process. */
export class MemoryJobStore implements JobStore {
  readonly embedded = true;
  private readonly clock: () => number;
  private readonly maxFinishedBytes: number;
  private readonly jobs = new Map<string, StoredJob>();
  private readonly running = new Set<string>();
  /** By principal, each in the order of time. */
  private readonly keys = new Map<string, Map<string, RememberedKey>>();
  /** Jobs that are over, by how long they are kept: each in the order in which they ended, which is that of their leaving. */
  private readonly finished = new Map<number, Fifo<StoredJob>>();
  private finishedBytes = 0;
  private readonly leases = new Map<string, number>();
  private readonly inboxes = new Map<string, Command[]>();
  private readonly watchers = new Map<string, Set<Watcher>>();
  private readonly listeners = new Set<StoreListener>();
  private entries = 0;
  private swept: number;

  constructor({ now = Date.now, maxFinishedBytes = MAX_FINISHED_BYTES }: MemoryJobStoreOptions = {}) {
    this.clock = now;
    this.maxFinishedBytes = maxFinishedBytes;
    this.swept = now();
  }

  listen(listener: StoreListener): void {
    this.listeners.add(listener);
  }

  newId(make: () => string): string {
    return flat(make());
  }

  async create(job: NewJob): Promise<Created> {
    this.sweep();
    const now = this.clock();
    const key = job.idempotency;
    const seen = key && this.keys.get(job.principal)?.get(key.key);
    if (seen && seen.until > now && seen.fingerprint !== key?.fingerprint) return { outcome: 'conflict' };
    if (seen && seen.until > now && seen.id !== job.id) return { outcome: 'known', id: seen.id };
    const known = this.jobs.get(job.id);
    if (known) return { outcome: 'created', created: known.created };
    const inbox = this.inboxes.get(job.owner) ?? [];
    if (job.input !== undefined && inbox.length >= MAX_INBOX) return { outcome: 'busy' };
    const { id, kind, principal, owner, about } = job;
    this.jobs.set(id, {
      id,
      kind,
      principal,
      owner,
      about,
      created: now,
      state: 'running',
      last: job.events.length,
      from: 1,
      snapshot: undefined,
      cancel: undefined,
      approvals: undefined,
      events: job.events.map((data, i) => ({ seq: i + 1, data })),
      bytes: undefined,
      logUntil: undefined,
      until: undefined,
      whole: undefined,
    });
    this.running.add(job.id);
    if (key) this.remember(principal, key.key, { id: job.id, fingerprint: key.fingerprint, until: now + key.keepMs });
    if (job.input !== undefined) this.send(owner, { id: job.id, input: job.input });
    return { outcome: 'created', created: now };
  }

  async discard(job: NewJob): Promise<void> {
    const stored = this.jobs.get(job.id);
    if (!stored || stored.owner !== job.owner || stored.last !== job.events.length) return;
    this.jobs.delete(job.id);
    this.running.delete(job.id);
    if (job.idempotency) this.keys.get(job.principal)?.delete(job.idempotency.key);
  }

  async append({ id, owner }: JobFacts, { events, asks, end, collapse }: Batch): Promise<Appended> {
    const job = this.jobs.get(id);
    if (!job) return 'lost';
    if (job.owner !== owner) return 'fenced';
    const [first] = events;
    const final = events.at(-1);
    if (!first || !final) return 'stored';
    if (job.last >= final.seq && (!end || job.state === end.state)) return 'stored';
    if (job.state !== 'running') return 'fenced';
    if (first.seq > job.last + 1) return 'lost';
    const fresh = events.filter(({ seq }) => seq > job.last).map(bare);
    job.events.push(...fresh);
    job.last = final.seq;
    for (const name of asks) {
      job.approvals ??= new Map();
      if (!job.approvals.has(name)) job.approvals.set(name, undefined);
    }
    if (collapse) {
      job.from = collapse.from;
      job.snapshot = collapse.snapshot;
      job.events = job.events.filter(({ seq }) => seq >= collapse.from);
    }
    if (end) this.finish(job, end);
    this.announce(id, fresh);
    return 'stored';
  }

  async restore(whole: WholeJob): Promise<Appended> {
    const { id, owner, kind, principal, about, created, from, snapshot, cancel, approvals, events, end } = whole;
    const job = this.jobs.get(id);
    const last = from - 1 + events.length;
    if (job) {
      if (job.owner !== owner) return 'fenced';
      if (job.last >= last && (!end || job.state === end.state)) return 'stored';
      if (job.state !== 'running') return 'fenced';
    }
    const restored: StoredJob = {
      ...{ id, owner, kind, principal, about, created, from, snapshot, last, cancel: job?.cancel ?? cancel },
      ...NOT_OVER,
      state: 'running',
      // What others have decided meanwhile holds, whatever the owner knows of it.
      approvals: new Map([...approvals, ...[...(job?.approvals ?? [])].filter(([, decision]) => decision)]),
      events: events.map(bare),
    };
    this.jobs.set(id, restored);
    this.running.add(id);
    if (end) this.finish(restored, end);
    this.announce(
      id,
      events.filter(({ seq }) => seq > (job?.last ?? 0)),
    );
    return 'stored';
  }

  async read(id: string, after: number): Promise<JobPage | undefined> {
    this.sweep();
    const job = this.jobs.get(id);
    const now = this.clock();
    if (!job || (job.until !== undefined && job.until <= now)) return undefined;
    if (job.logUntil !== undefined && job.logUntil <= now && job.from < job.last) {
      job.from = job.last;
      job.snapshot = job.whole;
      job.events = job.events.slice(-1);
    }
    const { kind, principal, owner, about, created, state, last, from, snapshot, cancel, approvals } = job;
    const facts = { id, kind, principal, owner, about, created };
    return {
      record: { ...facts, state, last, from, snapshot, cancel, approvals: approvals ? new Map(approvals) : NONE },
      events: job.events.filter(({ seq }) => seq > after),
    };
  }

  async cancel(id: string, principal: string | undefined, reason: string): Promise<Cancelled> {
    const job = this.jobs.get(id);
    if (!job || (principal !== undefined && job.principal !== principal)) return undefined;
    if (job.state === 'running' && job.cancel === undefined) {
      job.cancel = reason;
      this.send(job.owner, { id });
    }
    return { state: job.state };
  }

  async approve(id: string, principal: string | undefined, approval: string, decision: Decision): Promise<Approved> {
    const job = this.jobs.get(id);
    if (job?.state !== 'running' || (principal !== undefined && job.principal !== principal)) return undefined;
    if (!job.approvals?.has(approval)) return undefined;
    const known = job.approvals.get(approval);
    if (known) return known.approved === decision.approved ? 'same' : 'conflict';
    job.approvals.set(approval, decision);
    this.send(job.owner, { id });
    return 'decided';
  }

  watch(id: string, watcher: Watcher): () => void {
    const set = this.watchers.get(id) ?? new Set<Watcher>();
    this.watchers.set(id, set);
    set.add(watcher);
    queueMicrotask(() => {
      if (set.has(watcher)) watcher.level();
    });
    return () => {
      set.delete(watcher);
      if (set.size === 0) this.watchers.delete(id);
    };
  }

  async inbox(owner: string): Promise<readonly Command[]> {
    return [...(this.inboxes.get(owner) ?? [])];
  }

  async done(owner: string, commands: readonly Command[]): Promise<void> {
    const gone = new Set(commands.map(({ entry }) => entry));
    const left = (this.inboxes.get(owner) ?? []).filter(({ entry }) => !gone.has(entry));
    if (left.length > 0) this.inboxes.set(owner, left);
    else this.inboxes.delete(owner);
  }

  async renew(owner: string): Promise<boolean> {
    const held = await this.alive(owner);
    this.leases.set(owner, this.clock() + LEASE_MS);
    return held;
  }

  async retire(owner: string): Promise<void> {
    this.leases.delete(owner);
  }

  async owners(): Promise<ReadonlyMap<string, boolean>> {
    const owners = new Map<string, boolean>();
    for (const id of this.running) {
      const owner = this.jobs.get(id)?.owner;
      if (owner !== undefined) owners.set(owner, await this.alive(owner));
    }
    return owners;
  }

  async alive(owner: string): Promise<boolean> {
    return (this.leases.get(owner) ?? 0) > this.clock();
  }

  async jobsOf(owner: string): Promise<readonly string[]> {
    return [...this.running].filter((id) => this.jobs.get(id)?.owner === owner);
  }

  async reap({ id, owner, last }: JobRecord, { events, end }: Batch): Promise<Reaped> {
    const job = this.jobs.get(id);
    if (!job || job.owner !== owner || job.state !== 'running' || !end) return 'over';
    if (job.last !== last) return 'grown';
    job.owner = '';
    job.events.push(...events);
    job.last += events.length;
    this.finish(job, end);
    this.announce(id, events);
    return 'reaped';
  }

  /** The list is made anew each time it is asked for. */
  async strike(): Promise<void> {}

  async bury(owner: string): Promise<void> {
    this.inboxes.delete(owner);
  }

  steadySince(): number {
    return Number.NEGATIVE_INFINITY;
  }

  async recovering(): Promise<boolean> {
    return false;
  }

  private finish(job: StoredJob, { state, keepMs, logMs, snapshot }: BatchEnd): void {
    const now = this.clock();
    this.running.delete(job.id);
    job.state = state;
    job.until = now + keepMs;
    job.logUntil = now + logMs;
    job.whole = snapshot;
    // It may be kept for long: without the room that a growing list has, and its texts in one piece.
    job.about = flat(job.about);
    job.events = job.events.map((event) => ({ ...event, data: flat(event.data) }));
    job.bytes = job.events.reduce((sum, { data }) => sum + data.length, JOB_BYTES + (snapshot?.length ?? 0));
    this.finishedBytes += job.bytes;
    const queue = this.finished.get(keepMs) ?? new Fifo();
    this.finished.set(keepMs, queue);
    queue.push(job);
    // A few at a time: all at once would hold up everybody for as long as it takes.
    this.forgetOver(queue, now, 2);
    while (this.finishedBytes > this.maxFinishedBytes && this.forgetOldest());
  }

  /** Jobs whose time is over, at most so many. */
  private forgetOver(queue: Fifo<StoredJob>, now: number, max = Number.POSITIVE_INFINITY): void {
    for (let n = 0; n < max && (queue.peek()?.until ?? Number.POSITIVE_INFINITY) <= now; n++) this.forget(queue);
  }

  /** False: there is none. */
  private forgetOldest(): boolean {
    let oldest: Fifo<StoredJob> | undefined;
    let first = Number.POSITIVE_INFINITY;
    for (const [keepMs, queue] of this.finished) {
      const endedAt = (queue.peek()?.until ?? Number.POSITIVE_INFINITY) - keepMs;
      if (endedAt >= first) continue;
      first = endedAt;
      oldest = queue;
    }
    if (oldest) this.forget(oldest);
    return oldest !== undefined;
  }

  private forget(queue: Fifo<StoredJob>): void {
    const job = queue.shift();
    if (!job) return;
    if (this.jobs.get(job.id) === job) this.jobs.delete(job.id);
    this.finishedBytes -= job.bytes ?? 0;
  }

  private remember(principal: string, name: string, key: RememberedKey): void {
    const keys = this.keys.get(principal) ?? new Map<string, RememberedKey>();
    this.keys.set(principal, keys);
    keys.delete(name); // again at the end: the map is in the order of time
    keys.set(name, key);
    for (const oldest of keys.keys()) {
      if (keys.size <= MAX_IDEMPOTENCY_KEYS) break;
      keys.delete(oldest);
    }
  }

  private send(owner: string, command: Omit<Command, 'entry'>): void {
    const inbox = this.inboxes.get(owner) ?? [];
    this.inboxes.set(owner, inbox);
    inbox.push({ entry: String(++this.entries), ...command });
    for (const listener of this.listeners) queueMicrotask(() => listener.rang());
  }

  /** Never inside the writer's own call. */
  private announce(id: string, events: readonly JobEvent[]): void {
    const watchers = this.watchers.get(id);
    if (!watchers || events.length === 0) return;
    queueMicrotask(() => {
      for (const event of events) for (const watcher of watchers) watcher.arrived(event);
    });
  }

  private sweep(): void {
    const now = this.clock();
    if (now - this.swept < SWEEP_EVERY_MS) return;
    this.swept = now;
    for (const [keepMs, queue] of this.finished) {
      this.forgetOver(queue, now);
      if (queue.size === 0) this.finished.delete(keepMs);
    }
    for (const [principal, keys] of this.keys) {
      for (const [name, { until }] of keys) if (until <= now) keys.delete(name);
      if (keys.size === 0) this.keys.delete(principal);
    }
  }
}
