import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LogError } from '../streams/log.ts';
import { JobCancelled, JobError } from './errors.ts';
import { Inbox } from './inbox.ts';
import type { Decision, EndState, JobEvent, JobRecord } from './job.ts';
import type { JobKind } from './kind.ts';
import { Lingering } from './lingering.ts';
import { JobReader } from './reader.ts';
import { Reaper } from './reaper.ts';
import { Shelf } from './shelf.ts';
import type { Approved, Cancelled, Command, JobPage, JobStore, NewJob } from './store.ts';
import { type Job, JobWriter, type WriterObserver } from './writer.ts';

/** Does a job. Returns when it has ended it; what it throws ends it as failed. */
export type Work = (job: Job) => Promise<void>;
/** Does a job that another replica has asked for. */
export type RemoteWork = (job: Job, input: string) => Promise<void>;

export type Verdict =
  | { readonly allowed: true; readonly release: () => void }
  | { readonly allowed: false; readonly reason: string };

export interface JobsObserver extends WriterObserver {
  started(kind: string): void;
  ended(kind: string, state: EndState): void;
  reaped(kind: string): void;
}

export interface JobsOptions {
  readonly store: JobStore;
  /** New at every start. */
  readonly replica: string;
  readonly observe: JobsObserver;
  /** A place for one more running job of a principal. */
  readonly admit?: (principal: string) => Promise<Verdict>;
  /** Something went wrong that nobody waits for. */
  readonly failed?: (message: string, error: unknown) => void;
  /** Tests shorten these. */
  readonly times?: Partial<JobTimes>;
}

export interface JobTimes {
  readonly renewMs: number;
  readonly lookMs: number;
  readonly holdOffMs: number;
  /** How long a cancelled job has to end by itself. */
  readonly cancelMs: number;
  /** How long a stream stays in memory after its last reader, and a finished one after its end. */
  readonly lingerMs: number;
}

const TIMES: JobTimes = { renewMs: 3_000, lookMs: 1_000, holdOffMs: 10_000, cancelMs: 10_000, lingerMs: 10_000 };
/** How long an idempotency key is remembered. */
const KEY_MS = 24 * 60 * 60 * 1_000;

export interface NewWork {
  readonly kind: JobKind;
  readonly principal: string;
  readonly about?: string;
  /** Events that stand at the beginning of the stream; they are there as soon as the job is. */
  readonly events?: readonly string[];
  /** The same key and fingerprint again lead to the same job. */
  readonly idempotency?: { readonly key: string; readonly fingerprint: string };
  /** How ids of this kind are made; random and unguessable. */
  readonly newId?: () => string;
}

export interface Started {
  readonly id: string;
  /** False: the idempotency key has led to a job that was there before. */
  readonly created: boolean;
}

interface Owned {
  readonly writer: JobWriter;
  readonly release: () => void;
}

/**
 * Everything that runs. A job belongs to the gateway and not to who asked for it: it goes on when its client leaves, any
 * number of readers on any replica may follow it, and it ends with exactly one terminal event, even if its replica dies.
 */
export class Jobs {
  private readonly options: JobsOptions;
  private readonly times: JobTimes;
  private readonly kinds = new Map<string, { readonly kind: JobKind; readonly work: RemoteWork | undefined }>();
  private readonly owned = new Map<string, Owned>();
  /** Jobs that the store may have already and this replica has not; true: something was asked of them meanwhile. */
  private readonly creating = new Map<string, boolean>();
  private readonly shelf: Shelf;
  /** Jobs that are over: for a while they can still be given again to a store that loses them. */
  private readonly done: Lingering;
  /** Replicas that somebody has asked for and that had no lease, and since when. */
  private readonly missing = new Map<string, number>();
  private readonly losses: (() => void)[] = [];
  private readonly reaper: Reaper;
  private readonly inbox: Inbox;
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly closing = new AbortController();
  /** The store may not know that this replica is alive. */
  private unseen = true;
  private stopping = false;
  /** The store may have jobs of this replica that it has done with. */
  private lookAtOwn = false;
  private doubtedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: JobsOptions) {
    this.options = options;
    this.times = { ...TIMES, ...options.times };
    const { store, replica, observe } = options;
    this.shelf = new Shelf({
      ...{ store, kindOf: (name) => this.kinds.get(name)?.kind },
      holdOffMs: this.times.holdOffMs,
      lingerMs: this.times.lingerMs,
      isWritten: (id) => this.owned.get(id)?.writer.over === false,
    });
    this.done = new Lingering(this.times.lingerMs, (id) => this.owned.delete(id));
    this.reaper = new Reaper({
      store,
      replica,
      kindOf: (name) => this.kinds.get(name)?.kind,
      holdOffMs: this.times.holdOffMs,
      reaped: (kind) => observe.reaped(kind),
      unknownKind: (kind) => this.failed(`A job of the unknown kind "${kind}" lost its gateway.`, undefined),
    });
    this.inbox = new Inbox({
      store,
      replica,
      obey: (command) => this.obey(command),
      failed: (error) => this.failed('An inbox could not be read.', error),
    });
    store.listen({ rang: () => this.rang(), lost: () => this.lost() });
    const every = (ms: number, what: string, run: () => Promise<void>): void => {
      const once = (): void => {
        run().catch((error: unknown) => {
          if (!(error instanceof LogError)) this.failed(what, error);
        });
      };
      this.timers.push(setInterval(once, ms).unref());
      once();
    };
    every(this.times.renewMs, 'The lease could not be renewed.', () => this.renew());
    every(this.times.lookMs, 'Jobs of lost gateways could not be ended.', () => this.look());
  }

  /** Makes a kind known, and the work for jobs of this kind that other replicas ask for. */
  declare(kind: JobKind, work?: RemoteWork): void {
    if (this.kinds.has(kind.name)) throw new Error(`There already is a kind of job called "${kind.name}".`);
    this.kinds.set(kind.name, { kind, work });
  }

  /** Running jobs of this replica, by kind. */
  running(): ReadonlyMap<string, { running: number; waiting: number }> {
    const counts = new Map([...this.kinds.keys()].map((name) => [name, { running: 0, waiting: 0 }]));
    for (const { writer } of this.owned.values()) {
      const count = counts.get(writer.kind);
      if (count && !writer.over) count[writer.asking ? 'waiting' : 'running']++;
    }
    return counts;
  }

  /** Throws a `JobError`, or a `LogError` when the store is away; nothing was started then. */
  async start(wanted: NewWork, work: Work): Promise<Started> {
    const begunAt = performance.now();
    const { replica } = this.options;
    const { started, page, release } = await this.create(wanted, replica);
    if (page) this.run(page, wanted.kind, begunAt, release, work);
    return started;
  }

  /** Has another replica do the work: what it was declared with for this kind. */
  async dispatch(wanted: NewWork, owner: string, input: string): Promise<Started> {
    const { store, replica } = this.options;
    if (owner !== replica && !(await store.alive(owner))) {
      throw new JobError('away', 'The gateway that should do this is gone.');
    }
    const { started, page, release } = await this.create(wanted, owner, input);
    if (page) void this.holdPlace(started.id, release);
    return started;
  }

  /** What is known of a job; undefined also for those who do not own it. `principal` undefined: whoever it belongs to. */
  async find(id: string, principal?: string): Promise<JobRecord | undefined> {
    const page = await this.options.store.read(id, Number.MAX_SAFE_INTEGER);
    return page && (principal === undefined || page.record.principal === principal) ? page.record : undefined;
  }

  /**
   * A reader behind a number; undefined if there is no such job for this principal. While the store is away it waits.
   * `after` undefined: a position was given that cannot be understood.
   */
  async attach(
    id: string,
    { principal, after }: { readonly principal?: string; readonly after: number | undefined },
  ): Promise<JobReader | undefined> {
    const track = this.shelf.take(id);
    const holder = { wake: () => {} };
    track.waiters.add(holder); // or it might leave while we wait
    const known = track.facts !== undefined || (await track.follow(after ?? 0));
    const allowed = known && !track.expired && (principal === undefined || track.facts?.principal === principal);
    if (allowed && after !== undefined) await track.reach(after);
    track.waiters.delete(holder);
    if (!allowed) {
      if (known) this.shelf.leave(id);
      else this.shelf.drop(track);
      return undefined;
    }
    return new JobReader(track, after, () => this.shelf.leave(id));
  }

  /** Asks a job to end; resolves to the state it is in, undefined if there is no such job for this principal. */
  async cancel(id: string, principal: string | undefined, reason: string): Promise<Cancelled> {
    const cancelled = await this.options.store.cancel(id, principal, reason);
    if (cancelled?.state === 'running') this.owned.get(id)?.writer.cancel(reason);
    return cancelled;
  }

  async approve(id: string, principal: string | undefined, name: string, decision: Decision): Promise<Approved> {
    const approved = await this.options.store.approve(id, principal, name, decision);
    if (approved === 'decided') this.owned.get(id)?.writer.answered(name, decision);
    return approved;
  }

  /** Whether this replica runs a job. */
  owns(id: string): boolean {
    return this.owned.get(id)?.writer.over === false;
  }

  /**
   * Whether a replica is there. `unsure`: its lease has just run out, or the store was away or has lost something, so that
   * it may well live.
   */
  async replicaState(owner: string): Promise<'alive' | 'gone' | 'unsure'> {
    const { store, replica } = this.options;
    if (owner === replica || (await store.alive(owner))) {
      this.missing.delete(owner);
      return 'alive';
    }
    const now = performance.now();
    const since = this.missing.get(owner) ?? now;
    this.missing.set(owner, since);
    return now - Math.max(since, store.steadySince()) < this.times.holdOffMs ? 'unsure' : 'gone';
  }

  /** Whether the store has lost something so recently that not everybody has brought back yet what was theirs. */
  recovering(): Promise<boolean> {
    return this.options.store.recovering('');
  }

  /** Called when the store was emptied or went back. */
  onLost(lost: () => void): void {
    this.losses.push(lost);
  }

  /** Takes no more work, lets what runs finish, ends the rest, and leaves. */
  async stop(graceMs: number): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    const all = (): Promise<unknown> => Promise.all([...this.owned.values()].map(({ writer }) => writer.settled));
    await Promise.race([all(), sleep(graceMs, undefined, { signal: this.closing.signal }).catch(() => {})]);
    for (const { writer } of this.owned.values()) {
      writer.endAs({ cause: 'shutdown', message: 'The gateway that ran this job has stopped.' });
    }
    // The ends still have to reach the store; if it is away, other replicas end the jobs.
    await Promise.race([all(), sleep(LAST_WORDS_MS, undefined, { signal: this.closing.signal }).catch(() => {})]);
    await this.close(true);
  }

  /** At once, as if the process had died; `retire`: after everything was ended. */
  async close(retire = false): Promise<void> {
    this.stopping = true;
    this.closing.abort();
    this.inbox.close();
    for (const timer of this.timers) clearInterval(timer);
    this.done.close();
    for (const { writer } of this.owned.values()) writer.close();
    this.shelf.close();
    if (retire) await this.options.store.retire(this.options.replica).catch(() => {});
  }

  private async create(
    { kind, principal, about = '', events = [], idempotency, newId = randomUUID }: NewWork,
    owner: string,
    input?: string,
  ): Promise<{ readonly started: Started; readonly page?: JobPage; readonly release: () => void }> {
    const { store, admit } = this.options;
    if (this.kinds.get(kind.name)?.kind !== kind) throw new Error(`The kind of job "${kind.name}" was not declared.`);
    if (this.stopping) throw new JobError('stopping', 'This gateway is about to stop.');
    const verdict: Verdict = admit ? await admit(principal) : ADMITTED;
    if (!verdict.allowed) throw new JobError('limit', 'You have as many running jobs as you may.');
    const { release } = verdict;
    const id = store.newId(newId, principal, idempotency?.key);
    const facts: NewJob = { id, owner, kind: kind.name, principal, about, events };
    const job: NewJob =
      input === undefined && !idempotency
        ? facts
        : {
            ...facts,
            ...(input !== undefined && { input }),
            ...(idempotency && { idempotency: { ...idempotency, keepMs: KEY_MS } }),
          };
    if (input === undefined) this.creating.set(id, false);
    try {
      const answer = await store.create(job);
      if (answer.outcome === 'created') {
        const record: JobRecord = {
          id,
          owner,
          kind: kind.name,
          principal,
          about,
          created: answer.created,
          state: 'running',
          from: 1,
          last: events.length,
          snapshot: undefined,
          cancel: undefined,
          approvals: NO_APPROVALS,
        };
        return { started: { id, created: true }, page: { record, events: numbered(events) }, release };
      }
      if (answer.outcome === 'conflict') {
        throw new JobError('conflict', 'The idempotency key was used for something else.');
      }
      if (answer.outcome === 'busy') throw new JobError('busy', 'The gateway that should do this has too much to do.');
      release();
      this.creating.delete(id);
      return { started: { id: answer.id, created: false }, release };
    } catch (error) {
      release();
      this.creating.delete(id);
      if (error instanceof LogError) void this.discard(job);
      throw error;
    }
  }

  /** The place of a dispatched job is this replica's until the job is over, whether who asked for it stays or leaves. */
  private async holdPlace(id: string, release: () => void): Promise<void> {
    const reader = await this.attach(id, { after: 0 });
    const watch = (): void => {
      for (let taken = reader?.take(); taken; taken = reader?.take()) {
        if (taken.what !== 'end') continue;
        reader?.close();
        release();
        return;
      }
    };
    reader?.onWake(watch);
    if (reader) watch();
    else release();
  }

  /** A create whose answer was lost may have happened; nobody would ever end that job. */
  private async discard(job: NewJob): Promise<void> {
    for (let wait = 100; !this.closing.signal.aborted; wait = Math.min(2 * wait, 5_000)) {
      try {
        await this.options.store.discard(job);
        return;
      } catch (error) {
        if (!(error instanceof LogError)) throw error;
      }
      await sleep(wait, undefined, { signal: this.closing.signal, ref: false }).catch(() => {});
    }
  }

  private run(page: JobPage, kind: JobKind, begunAt: number, release: () => void, work: Work): void {
    const { store, observe } = this.options;
    const { record: facts } = page;
    const { id } = facts;
    const track = this.shelf.take(id);
    track.begin(page);
    const { cancelMs } = this.times;
    const writer = new JobWriter({ store, kind, facts, track, observe, begunAt, cancelMs });
    this.owned.set(id, { writer, release });
    const asked = this.creating.get(id);
    this.creating.delete(id);
    if (asked) this.rang();
    observe.started(kind.name);
    void this.finish(writer, work).catch((error: unknown) => this.failed('A job did not end in order.', error));
  }

  private async finish(writer: JobWriter, work: Work): Promise<void> {
    const { observe } = this.options;
    // What the work does after its end is its own affair: the job is over when its stream is.
    work(writer).then(
      () => writer.endAs({ cause: 'error', message: 'The job has stopped without a result.' }),
      (error: unknown) => {
        const { reason } = writer.signal;
        const message = error instanceof Error ? error.message : String(error);
        writer.endAs(
          reason instanceof JobCancelled
            ? { cause: 'cancelled', message: reason.message, error }
            : { cause: 'error', message, error },
        );
      },
    );
    await writer.settled;
    const owned = this.owned.get(writer.id);
    if (owned?.writer !== writer) return;
    owned.release();
    if (writer.endState) observe.ended(writer.kind, writer.endState);
    if (this.options.store.embedded) this.owned.delete(writer.id);
    else if (!this.closing.signal.aborted) this.done.put(writer.id);
    this.shelf.leave(writer.id);
  }

  private rang(): void {
    if (this.unseen) this.renew().catch(() => {}); // the store was away; nobody should take us for dead till the next time
    this.inbox.rang();
  }

  /** False: not yet. */
  private async obey({ id, input }: Command): Promise<boolean> {
    const { store, replica } = this.options;
    const owned = this.owned.get(id);
    if (input === undefined) {
      if (!owned && this.creating.has(id)) {
        this.creating.set(id, true);
        return false;
      }
      if (!owned || owned.writer.over) return true;
      await owned.writer.refresh();
      return true;
    }
    if (owned) return true; // the answer to `done` was lost: it has begun already
    const page = await store.read(id, 0);
    if (page?.record.owner !== replica || page.record.state !== 'running') return true;
    const known = this.kinds.get(page.record.kind);
    if (!known) return true;
    this.run(
      page,
      known.kind,
      performance.now(),
      () => {},
      async (job) => {
        if (this.stopping) throw new Error('The gateway that should do this is about to stop.');
        if (!known.work) throw new Error(`Jobs of the kind "${known.kind.name}" cannot be sent to another gateway.`);
        await known.work(job, input);
      },
    );
    if (page.record.cancel !== undefined) this.owned.get(id)?.writer.cancel(page.record.cancel);
    return true;
  }

  /**
   * After a time without a lease, others may have ended what runs here, or be about to. Work that has nothing to write
   * would never hear of it.
   */
  private async renew(): Promise<void> {
    if (this.closing.signal.aborted) return;
    const { store, replica } = this.options;
    this.unseen = true;
    const held = await store.renew(replica);
    this.unseen = false;
    const now = performance.now();
    if (!held) this.doubtedUntil = now + this.times.holdOffMs;
    if (now >= this.doubtedUntil) return;
    for (const { writer } of this.owned.values()) if (!writer.over) await writer.refresh();
  }

  private async look(): Promise<void> {
    await this.reaper.look();
    if (!this.lookAtOwn) return;
    this.lookAtOwn = false;
    const doing = (id: string): boolean => this.creating.has(id) || this.owned.get(id)?.writer.fenced === false;
    let done = false;
    try {
      done = await this.reaper.lookAtOwn(doing);
    } finally {
      if (!done) this.lookAtOwn = true;
    }
  }

  /** The store was emptied or went back: what runs here is given to it again. */
  private lost(): void {
    this.lookAtOwn = true;
    for (const { writer } of this.owned.values()) writer.restore();
    for (const track of this.shelf) if (track.followed) track.level();
    this.renew().catch(() => {});
    for (const lost of this.losses) lost();
  }

  private failed(message: string, error: unknown): void {
    this.options.failed?.(message, error);
  }
}

/** How long the ends of interrupted jobs have to reach the store when a gateway stops. */
const LAST_WORDS_MS = 3_000;

const ADMITTED: Verdict = { allowed: true, release: () => {} };

const NO_APPROVALS: JobRecord['approvals'] = new Map();

const numbered = (events: readonly string[]): JobEvent[] => events.map((data, i) => ({ seq: i + 1, data }));
