import { setTimeout as sleep } from 'node:timers/promises';
import { LogError } from '../streams/log.ts';
import { JobEntry } from './entry.ts';
import type { JobEvent, JobFacts, JobLog, JobState } from './job.ts';
import { type JobKind, lastWords } from './kind.ts';
import type { JobPage, JobStore, Watcher } from './store.ts';

/** Somebody who waits for more of a job. */
export interface Waiter {
  wake(): void;
}

export interface TrackOptions {
  readonly store: JobStore;
  readonly id: string;
  readonly kindOf: (name: string) => JobKind | undefined;
  /** How long the store must be steady, and the job missing, until it counts as lost with its owner. */
  readonly holdOffMs: number;
}

const FIRST_DELAY_MS = 50;
const LONGEST_DELAY_MS = 1_000;

/**
 * What this replica holds of one job's stream: only what is stored, without a hole. The owner's own writer feeds it; on
 * every other replica it follows the store. Dense numbers make this simple: whatever is not the next one is either known
 * already or shows that something is missing, which is then read.
 */
export class Track implements Watcher {
  readonly id: string;
  readonly waiters = new Set<Waiter>();
  facts: JobFacts | undefined;
  state: JobState = 'running';
  last = 0;
  /** The number of the first event that anybody has; `snapshot` stands for those before. */
  from = 1;
  snapshot: string | undefined;
  /** Bytes of the events in memory. */
  size = 0;
  /** How often what was shown here has turned out not to be what everybody else sees. */
  replaced = 0;
  private readonly options: TrackOptions;
  private closed = false;
  private entries: JobEntry[] = [];
  private unwatch: (() => void) | undefined;
  private reading = false;
  private readAgain = false;
  /** What was announced does not continue what was seen: nothing is added until it was read. */
  private doubted = false;
  /** Somebody wants what lies before the first entry. */
  private wantedAfter: number | undefined;
  private missingSince: number | undefined;
  private overSince: number | undefined;
  /** Fed by this replica's own writer. */
  private own = false;
  private readonly known: Promise<boolean>;
  private found: (known: boolean) => void = () => {};

  constructor(options: TrackOptions) {
    this.id = options.id;
    this.options = options;
    this.known = new Promise((resolve) => {
      this.found = resolve;
    });
  }

  get over(): boolean {
    return this.state !== 'running';
  }

  /** It is over, and was known here for as long as its kind is kept: the store has forgotten it by now. */
  get expired(): boolean {
    const kind = this.facts && this.options.kindOf(this.facts.kind);
    return this.overSince !== undefined && kind !== undefined && performance.now() - this.overSince > kind.keepMs;
  }

  /** The number of the first event in memory, or the one that comes next. */
  get first(): number {
    return this.last - this.entries.length + 1;
  }

  log(): JobLog {
    return { snapshot: this.snapshot, from: this.from, last: this.last, events: this.entries };
  }

  /** At most `max` events behind a number that is in memory. */
  after(seq: number, max: number): readonly JobEntry[] {
    const start = seq - this.first + 1;
    return this.entries.slice(start, start + max);
  }

  // Fed by the writer of this replica

  /** From now on this replica writes the stream; `page` is all that there is of it. */
  begin({ record, events }: JobPage): void {
    this.own = true;
    this.unwatch?.();
    this.unwatch = undefined;
    this.facts = record;
    this.from = record.from;
    this.snapshot = record.snapshot;
    this.empty(record.from - 1);
    this.add(events);
    this.found(true);
  }

  add(events: readonly JobEvent[]): void {
    for (const event of events) {
      const entry = event instanceof JobEntry ? event : new JobEntry(event);
      this.entries.push(entry);
      this.size += entry.size;
      this.last = event.seq;
      if (event.end) this.overAs(event.end);
    }
    this.wake();
  }

  collapse(from: number, snapshot: string): void {
    this.from = from;
    this.snapshot = snapshot;
    this.forget(from);
  }

  // Following the store

  /** Resolves to whether there is such a job; `after` is the number from which on it is wanted. */
  async follow(after: number): Promise<boolean> {
    this.own = false;
    this.want(after);
    this.unwatch ??= this.options.store.watch(this.id, this);
    return this.known;
  }

  /** Reads what lies before the first entry, from behind a number on. */
  want(after: number): void {
    this.wantedAfter = Math.min(after, this.wantedAfter ?? after);
    if (this.unwatch) this.level();
  }

  /**
   * Resolves when a number that somebody has seen elsewhere is known here too, or is found to lie beyond the last event.
   * What is stored is announced to everybody, but not to everybody at once.
   */
  async reach(seq: number): Promise<void> {
    for (let attempt = 0; this.last < seq && !this.over && !this.closed; attempt++) {
      try {
        const page = await this.options.store.read(this.id, Number.MAX_SAFE_INTEGER);
        const last = page?.record.last ?? 0;
        const beyond = page && last < seq && last >= this.last;
        if (beyond && !(await this.options.store.recovering(this.id))) return;
        if (last >= seq && this.unwatch) this.level();
      } catch (error) {
        if (!(error instanceof LogError)) throw error;
      }
      await this.moreWithin(Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS));
    }
  }

  get followed(): boolean {
    return this.unwatch !== undefined;
  }

  level(): void {
    if (this.reading) {
      this.readAgain = true;
      return;
    }
    void this.read();
  }

  arrived(event: JobEvent): void {
    if (this.over) return;
    if (!this.facts) {
      // It may be too young for what is being read.
      if (this.reading) this.readAgain = true;
      return;
    }
    // Another event than the one that was seen: the store went back, and somebody has ended what was left of it.
    if (event.seq <= this.last && !this.same(event)) this.doubted = true;
    if (this.doubted || event.seq > this.last + 1) this.level();
    if (this.doubted || event.seq !== this.last + 1) return;
    this.add([event]);
    this.trim();
  }

  close(): void {
    this.closed = true;
    this.unwatch?.();
    this.unwatch = undefined;
    this.found(false);
  }

  private async read(): Promise<void> {
    this.reading = true;
    for (let attempt = 0; !this.closed; attempt++) {
      this.readAgain = false;
      let wait = Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
      try {
        if (await this.readOnce()) {
          if (this.readAgain) continue;
          break;
        }
        if (this.missingSince !== undefined) wait = LONGEST_DELAY_MS;
      } catch (error) {
        if (!(error instanceof LogError)) throw error; // the store is away: it comes back or we are closed
      }
      await sleep(wait, undefined, { ref: false });
    }
    this.reading = false;
  }

  /** False: to be tried again. */
  private async readOnce(): Promise<boolean> {
    const { store, id } = this.options;
    const back = this.wantedAfter !== undefined && this.wantedAfter < this.first - 1;
    const position = !this.facts || back ? (this.wantedAfter ?? 0) : this.last;
    // One more than is wanted: it shows whether this is still the stream that was seen, and who follows a finished one
    // from its end on holds its terminal event, too.
    const after = Math.max(0, position - 1);
    const page = await store.read(id, after);
    if (this.closed || this.own) return true;
    if (page) {
      this.missingSince = undefined;
      return this.take(page, after);
    }
    if (this.facts && !this.over) return this.mourn();
    if (await store.recovering(id)) return false; // its owner may still have it
    if (this.facts) this.inherit();
    else this.found(false);
    return true;
  }

  /** False: there must be more of it. */
  private take({ record, events }: JobPage, after: number): boolean {
    const { state, from, snapshot, last } = record;
    const first = !this.facts;
    // The store went back. The owner will not: it brings the rest, or somebody ends it.
    if (!first && state === 'running' && last < this.first - 1) return false;
    this.wantedAfter = undefined;
    this.facts = record;
    // An end that is not the one that was seen, not behind it, or behind something else: the store went back, and somebody
    // has ended what was left.
    const changed = events.some((event) => event.seq === this.last && !this.same(event));
    const elsewhere = this.over ? last !== this.last : last <= this.last;
    const other = !first && state !== 'running' && (changed || elsewhere);
    if (other) this.replaced++;
    if (!this.readAgain) this.doubted = false;
    // Nothing of it yet, another end, or a hole that was collapsed: taken as it is. Who stands elsewhere is told.
    if (first || other || from > this.last + 1) this.empty(Math.min(Math.max(after, from - 1), last));
    else this.addBefore(events.filter(({ seq }) => seq < this.first));
    this.from = from;
    this.snapshot = snapshot;
    if (last >= this.last) this.overAs(state); // or more has arrived than there was when this was read
    this.add(events.filter(({ seq }) => seq > this.last));
    this.found(true);
    return true;
  }

  /** The store has forgotten a finished job: what is held here is all that is left of it, and who wants more is told. */
  private inherit(): void {
    this.wantedAfter = undefined;
    if (this.first <= this.from) return;
    this.from = this.first;
    this.snapshot = undefined;
    this.wake();
  }

  /** The owner brings a lost job back; if it does not, both are gone, and what was shown gets its end here. */
  private async mourn(): Promise<boolean> {
    const { store, kindOf, holdOffMs } = this.options;
    const facts = this.facts as JobFacts;
    const now = performance.now();
    this.missingSince ??= now;
    if (now - Math.max(this.missingSince, store.steadySince()) < holdOffMs) return false;
    const kind = kindOf(facts.kind);
    if (!kind) return false;
    const message = 'The gateway that ran this job is gone, and so is its record.';
    const { events, end } = lastWords(kind, facts, this.log(), { cause: 'store_lost', message });
    // Whoever did not see it from its beginning cannot say what it was.
    const snapshot = this.first <= this.from ? kind.snapshot?.(this.snapshot, this.entries, facts) : undefined;
    await store.restore({
      ...facts,
      owner: '',
      from: this.last + 1,
      last: this.last + events.length,
      snapshot,
      events,
      cancel: undefined,
      approvals: new Map(),
      end: { ...end, snapshot },
    });
    return false; // read it, or what another replica has written
  }

  /** A stream of another replica is held within the limits of its kind; who needs more of it reads it again. */
  private trim(): void {
    const kind = this.facts && this.options.kindOf(this.facts.kind);
    if (kind && (this.entries.length > kind.maxEvents || this.size > kind.maxBytes)) {
      this.forget(this.first + Math.ceil(this.entries.length / 2));
    }
  }

  private overAs(state: JobState): void {
    this.state = state;
    if (this.over) this.overSince ??= performance.now();
  }

  private empty(last: number): void {
    this.entries = [];
    this.size = 0;
    this.last = last;
  }

  /** Whether an event is the one that is held under its number, as far as that can be told. */
  private same({ seq, data, end }: JobEvent): boolean {
    const held = this.entries[seq - this.first];
    return held ? held.data === data && held.end === end : end === undefined || this.over;
  }

  private addBefore(events: readonly JobEvent[]): void {
    const entries = events.map((event) => new JobEntry(event));
    for (const { size } of entries) this.size += size;
    this.entries = [...entries, ...this.entries];
  }

  private forget(from: number): void {
    const gone = this.entries.splice(0, Math.max(0, from - this.first));
    for (const { size } of gone) this.size -= size;
  }

  private moreWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.waiters.delete(waiter);
        resolve();
      };
      const waiter: Waiter = { wake: done };
      const timer = setTimeout(done, ms).unref();
      this.waiters.add(waiter);
    });
  }

  private wake(): void {
    for (const waiter of this.waiters) waiter.wake();
  }
}
