import { setTimeout as sleep } from 'node:timers/promises';
import { LogError } from '../streams/log.ts';
import { aborted } from './aborted.ts';
import { JobEntry } from './entry.ts';
import { JobCancelled, JobOver } from './errors.ts';
import type { Decision, EndState, JobEvent, JobFacts, JobLog } from './job.ts';
import { type Ending, endOf, type JobKind, lastWords } from './kind.ts';
import type { Batch, BatchEnd, JobStore } from './store.ts';
import type { Track } from './track.ts';

/** An event, or how to write it once its number is known. */
export type EventData = string | ((seq: number) => string);

/** What the work of a job sees of it. */
export interface Job extends JobFacts {
  /** Aborted when the work should stop: with a `JobCancelled` it still ends the job, with a `JobOver` it cannot. */
  readonly signal: AbortSignal;
  /** Resolves when there is room for more, not when the event is stored. Throws a `JobOver`. */
  emit(data: EventData): Promise<void>;
  /** Emits a question and waits for the answer, which any replica may take. */
  ask(name: string, data: EventData): Promise<Decision>;
  /** Answers an own question, unless somebody has; resolves to the answer that holds. */
  decide(name: string, decision: Decision): Promise<Decision>;
  /** The terminal event. Resolves when it is stored. Throws a `JobOver`, also if another replica was first. */
  end(state: EndState, data: EventData): Promise<void>;
}

export interface WriterOptions {
  readonly store: JobStore;
  readonly kind: JobKind;
  readonly facts: JobFacts;
  readonly track: Track;
  readonly observe: WriterObserver;
  /** When the job was asked for, on the clock of `performance.now`. */
  readonly begunAt: number;
  /** How long the work has to end the job by itself after a cancel. */
  readonly cancelMs: number;
}

export interface WriterObserver {
  /** The first event was stored so many ms after the start. */
  first(kind: string, ms: number): void;
  batch(events: number): void;
  fenced(kind: string): void;
  restored(kind: string): void;
}

/** Larger batches hold up everything else on the server. */
const BATCH_EVENTS = 500;
const BATCH_BYTES = 512 * 1024;
/** What may wait for the store before the work has to wait too. */
const WAITING_BYTES = 1024 * 1024;
const FIRST_DELAY_MS = 50;
const LONGEST_DELAY_MS = 1_000;

interface Waiting {
  readonly event: JobEntry;
  readonly ask?: string;
}

/**
 * The single writer of a job's stream. It numbers events and has one batch on its way to the store at any time; what is
 * emitted meanwhile is the next one. Nobody sees an event before the store has it. Whatever was stored is also held in
 * memory, so that a store that lost it can be given it again.
 */
export class JobWriter implements Job {
  readonly id: string;
  readonly kind: string;
  readonly principal: string;
  readonly owner: string;
  readonly about: string;
  readonly created: number;
  /** Somebody else has ended it. */
  fenced = false;
  /** Resolves when the terminal event is stored, or the job was taken away. */
  readonly settled: Promise<void>;
  private readonly options: WriterOptions;
  /** Made when somebody asks for the signal: most work is over before. */
  private abort: AbortController | undefined;
  private stopped: Error | undefined;
  private closed = false;
  private waiting: Waiting[] = [];
  private waitingBytes = 0;
  private numbered: number;
  private ended: BatchEnd | undefined;
  private writing = false;
  private restoreDue = false;
  private cancelReason: string | undefined;
  private readonly questions = new Map<string, { decision?: Decision; answered: (decision: Decision) => void }>();
  private readonly roomWanted: (() => void)[] = [];
  private settle: () => void = () => {};

  constructor(options: WriterOptions) {
    const { facts, track } = options;
    this.options = options;
    this.id = facts.id;
    this.kind = facts.kind;
    this.principal = facts.principal;
    this.owner = facts.owner;
    this.about = facts.about;
    this.created = facts.created;
    this.numbered = track.last;
    if (this.numbered > 0) options.observe.first(this.kind, performance.now() - options.begunAt);
    this.settled = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  get signal(): AbortSignal {
    this.abort ??= new AbortController();
    if (this.stopped) this.abort.abort(this.stopped);
    return this.abort.signal;
  }

  /** It has its terminal event, stored or on its way, or is not ours any more. */
  get over(): boolean {
    return this.ended !== undefined || this.fenced;
  }

  /** How it ended here; undefined while it runs, and when another replica has ended it. */
  get endState(): EndState | undefined {
    return this.fenced ? undefined : this.ended?.state;
  }

  get asking(): boolean {
    return [...this.questions.values()].some(({ decision }) => !decision);
  }

  async emit(data: EventData): Promise<void> {
    this.put(data);
    await this.room();
  }

  async ask(name: string, data: EventData): Promise<Decision> {
    const answer = new Promise<Decision>((answered) => {
      this.questions.set(name, { answered });
    });
    this.put(data, name);
    await this.room();
    return Promise.race([answer, aborted(this.signal)]);
  }

  async decide(name: string, decision: Decision): Promise<Decision> {
    const question = this.questions.get(name);
    if (!question) throw new RangeError(`This job has not asked "${name}".`);
    for (let delay = FIRST_DELAY_MS; !question.decision; delay = Math.min(2 * delay, LONGEST_DELAY_MS)) {
      try {
        const outcome = await this.options.store.approve(this.id, undefined, name, decision);
        if (outcome === 'decided') this.answered(name, decision);
        else await this.refresh();
        if (!outcome && this.over) throw new JobOver('The job is over.');
      } catch (error) {
        if (!(error instanceof LogError)) throw error;
      }
      if (!question.decision) await sleep(delay, undefined, { signal: this.signal, ref: false });
    }
    return question.decision;
  }

  async end(state: EndState, data: EventData): Promise<void> {
    if (this.over) throw new JobOver('The job is over.');
    const seq = this.numbered + 1;
    const text = typeof data === 'string' ? data : data(seq);
    this.ended = endOf(this.options.kind, this, state, this.log());
    this.enqueue({ seq, data: text, end: state });
    await this.settled;
    if (this.fenced) throw new JobOver('Another replica has ended the job.');
  }

  /** Ends it in the words of its kind, unless it is over; its work is told to stop. */
  endAs(ending: Ending): void {
    if (this.over) return;
    const { events, end } = lastWords(this.options.kind, this, this.log(), ending);
    this.ended = end;
    for (const event of events) this.enqueue(event);
    this.stopWork(new JobOver(ending.message)); // work that waits for something would not hear of it otherwise
  }

  cancel(reason: string): void {
    if (this.over || this.cancelReason !== undefined) return;
    this.cancelReason = reason;
    this.stopWork(new JobCancelled(reason));
    const late = setTimeout(() => this.endAs({ cause: 'cancelled', message: reason }), this.options.cancelMs);
    late.unref();
    void this.settled.then(() => clearTimeout(late));
  }

  answered(name: string, decision: Decision): void {
    const question = this.questions.get(name);
    if (!question || question.decision) return;
    question.decision = decision;
    question.answered(decision);
  }

  /** What others have asked of it. */
  async refresh(): Promise<void> {
    const page = await this.options.store.read(this.id, Number.MAX_SAFE_INTEGER);
    if (!page) return;
    if (page.record.owner !== this.owner) return this.fence();
    for (const [name, decision] of page.record.approvals) if (decision) this.answered(name, decision);
    if (page.record.cancel !== undefined) this.cancel(page.record.cancel);
  }

  /** The store may have lost it. */
  restore(): void {
    if (this.fenced) return;
    this.restoreDue = true;
    void this.write();
  }

  /** Gives up whatever is not stored. */
  close(): void {
    this.closed = true;
    if (!this.over) this.stopWork(new JobOver('The gateway has stopped.'));
    this.settle();
  }

  private stopWork(reason: Error): void {
    this.stopped ??= reason;
    this.abort?.abort(reason);
  }

  private log(): JobLog {
    const { snapshot, from, events } = this.options.track.log();
    const all = [...events, ...this.waiting.map(({ event }) => event)];
    return { snapshot, from, last: this.numbered, events: all };
  }

  private put(data: EventData, ask?: string): void {
    if (this.over) throw new JobOver('The job is over.');
    const seq = this.numbered + 1;
    const text = typeof data === 'string' ? data : data(seq);
    const { kind, track } = this.options;
    const size = Buffer.byteLength(text);
    const tooLarge = kind.snapshot
      ? size > kind.maxBytes
      : seq > kind.maxEvents || track.size + this.waitingBytes + size > kind.maxBytes;
    if (tooLarge) {
      const message = 'The job has produced more than it may.';
      this.endAs({ cause: 'too_large', message });
      throw new JobOver(message);
    }
    this.enqueue({ seq, data: text }, ask);
  }

  private enqueue(event: JobEvent, ask?: string): void {
    const entry = new JobEntry(event);
    this.numbered = entry.seq;
    this.waitingBytes += entry.size;
    this.waiting.push({ event: entry, ...(ask !== undefined && { ask }) });
    // What is emitted in one go leaves as one batch.
    if (!this.writing) queueMicrotask(() => void this.write());
  }

  private async room(): Promise<void> {
    while (this.waitingBytes > Math.min(WAITING_BYTES, this.options.kind.maxBytes) && !this.fenced) {
      await new Promise<void>((resolve) => {
        this.roomWanted.push(resolve);
      });
    }
    if (this.fenced) throw new JobOver('Another replica has ended the job.');
  }

  private async write(): Promise<void> {
    if (this.writing) return;
    this.writing = true;
    let failures = 0;
    while ((this.waiting.length > 0 || this.restoreDue) && !this.fenced && !this.closed) {
      const restoring = this.restoreDue;
      try {
        if (restoring) await this.restoreOnce();
        else await this.writeOnce();
        failures = 0;
      } catch (error) {
        if (!(error instanceof LogError)) throw error;
        if (restoring) this.restoreDue = true;
        // The store is away: output waits. Every batch may be sent again, alone or with more behind it.
        const wait = Math.min(FIRST_DELAY_MS * 2 ** failures++, LONGEST_DELAY_MS);
        await sleep(wait, undefined, { ref: false });
      }
    }
    this.writing = false;
  }

  private async writeOnce(): Promise<void> {
    const { store, track, observe } = this.options;
    const sent = this.nextBatch();
    const events = sent.map(({ event }) => event);
    const collapse = this.collapseBefore(events);
    const batch: Batch = {
      events,
      asks: sent.flatMap(({ ask }) => (ask === undefined ? [] : [ask])),
      ...(events.at(-1)?.end && this.ended && { end: this.ended }),
      ...(collapse && { collapse }),
    };
    const outcome = await store.append(this, batch);
    if (outcome === 'fenced') return this.fence();
    if (outcome === 'lost') {
      this.restoreDue = true;
      return;
    }
    observe.batch(events.length);
    if (track.last === 0) observe.first(this.kind, performance.now() - this.options.begunAt);
    this.waiting.splice(0, sent.length);
    for (const { size } of events) this.waitingBytes -= size;
    track.add(events);
    if (collapse) track.collapse(collapse.from, collapse.snapshot);
    for (const wanted of this.roomWanted.splice(0)) wanted();
    if (events.at(-1)?.end) this.settle();
  }

  private nextBatch(): Waiting[] {
    let bytes = 0;
    let n = 0;
    for (const { event } of this.waiting) {
      bytes += event.size;
      if (n > 0 && (n === BATCH_EVENTS || bytes > BATCH_BYTES)) break;
      n++;
    }
    return this.waiting.slice(0, n);
  }

  /** When the stream has outgrown its limits, its older half goes. */
  private collapseBefore(coming: readonly JobEntry[]): Batch['collapse'] {
    const { kind, track } = this.options;
    if (!kind.snapshot) return undefined;
    const { snapshot, events } = track.log();
    let size = coming.reduce((sum, entry) => sum + entry.size, track.size);
    let count = events.length + coming.length;
    if (count <= kind.maxEvents && size <= kind.maxBytes) return undefined;
    let n = 0;
    while (n < events.length && (size > kind.maxBytes / 2 || count > kind.maxEvents / 2)) {
      size -= Buffer.byteLength(events[n]?.data ?? '');
      count--;
      n++;
    }
    return n === 0 ? undefined : { from: track.first + n, snapshot: kind.snapshot(snapshot, events.slice(0, n), this) };
  }

  private async restoreOnce(): Promise<void> {
    const { store, track, observe } = this.options;
    const { snapshot, from, last, events } = track.log();
    this.restoreDue = false; // it may be lost once more while this is on its way
    const outcome = await store.restore({
      ...{ id: this.id, kind: this.kind, principal: this.principal, owner: this.owner, about: this.about },
      ...{ created: this.created, snapshot, from, last, events, cancel: this.cancelReason },
      approvals: new Map([...this.questions].map(([name, { decision }]) => [name, decision])),
      ...(track.over && this.ended && { end: this.ended }),
    });
    if (outcome === 'fenced') this.fence();
    else observe.restored(this.kind);
  }

  /** Somebody else has ended it: nothing more is written or shown, and those who follow it here see what the store has. */
  private fence(): void {
    if (this.fenced) return;
    this.fenced = true;
    this.waiting = [];
    this.options.observe.fenced(this.kind);
    this.stopWork(new JobOver('Another replica has ended the job.'));
    for (const wanted of this.roomWanted.splice(0)) wanted();
    void this.options.track.follow(this.options.track.last);
    this.settle();
  }
}
