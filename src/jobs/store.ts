import type { Decision, EndState, JobEvent, JobFacts, JobLog, JobRecord, JobState } from './job.ts';

/** The end of a stream, and what becomes of it. */
export interface BatchEnd {
  readonly state: EndState;
  readonly keepMs: number;
  readonly logMs: number;
  /** Stands for everything before the terminal event once the stream itself is forgotten. */
  readonly snapshot: string | undefined;
}

/** Consecutive events of one job. */
export interface Batch {
  readonly events: readonly JobEvent[];
  /** Questions that these events ask. */
  readonly asks: readonly string[];
  readonly end?: BatchEnd;
  /** Everything before `from` is replaced by a snapshot. */
  readonly collapse?: { readonly from: number; readonly snapshot: string };
}

/**
 * `stored`  it is there, now or since an earlier try
 * `fenced`  the job has another owner or is over: nothing was written and nothing may be
 * `lost`    the store has less than the owner gave it: it must be restored
 */
export type Appended = 'stored' | 'fenced' | 'lost';

/**
 * `reaped`  it is over, by this call
 * `over`    it was over before, or is not the dead owner's any more
 * `grown`   it has more events than the caller knew: to be read again
 */
export type Reaped = 'reaped' | 'over' | 'grown';

export interface NewJob extends Omit<JobFacts, 'created'> {
  /** Events that are there from the beginning. */
  readonly events: readonly string[];
  /** For the owner's inbox, when it is another replica. */
  readonly input?: string;
  readonly idempotency?: { readonly key: string; readonly fingerprint: string; readonly keepMs: number };
}

export type Created =
  | { readonly outcome: 'created'; readonly created: number }
  /** The key was used before, for this job. */
  | { readonly outcome: 'known'; readonly id: string }
  /** The key was used before, for something else. */
  | { readonly outcome: 'conflict' }
  /** The owner's inbox is full. */
  | { readonly outcome: 'busy' };

/** Everything about a job that its owner holds, to be written again after the store lost it. */
export interface WholeJob extends JobFacts, JobLog {
  readonly cancel: string | undefined;
  readonly approvals: ReadonlyMap<string, Decision | undefined>;
  readonly end?: BatchEnd;
}

export interface JobPage {
  readonly record: JobRecord;
  /** Everything kept after the wanted number. */
  readonly events: readonly JobEvent[];
}

export type Cancelled = { readonly state: JobState } | undefined;

/** `decided`: by this call. `same`: already so. `conflict`: already the other way. */
export type Approved = 'decided' | 'same' | 'conflict' | undefined;

export interface Command {
  readonly entry: string;
  readonly id: string;
  /** Present: work to begin. Absent: something about a running job has changed. */
  readonly input?: string;
}

/** Who wants to hear of a job. */
export interface Watcher {
  /** The feed is confirmed, for the first time or again: what was stored before has to be read, what comes later arrives. */
  level(): void;
  arrived(event: JobEvent): void;
}

/** What the store tells a replica. */
export interface StoreListener {
  /** There may be something in the inbox. */
  rang(): void;
  /** State was or may have been lost; owners bring back what is theirs. */
  lost(): void;
}

/**
 * Where jobs are kept. Memory and Redis, one contract. Errors are `LogError`s with the code `unavailable`; every command
 * may be repeated after one without harm.
 */
export interface JobStore {
  /** It lives in this process: it costs nothing to ask, and does not lose what it was given. */
  readonly embedded?: boolean;
  listen(listener: StoreListener): void;
  /** A fresh id that lives where an idempotency key does, so that one step can write both. */
  newId(make: () => string, principal: string, key?: string): string;
  create(job: NewJob): Promise<Created>;
  /** Undoes a `create` of whose outcome nothing is known; a job that has begun is left alone. */
  discard(job: NewJob): Promise<void>;
  append(job: JobFacts, batch: Batch): Promise<Appended>;
  restore(job: WholeJob): Promise<Appended>;
  /** Undefined: not known. */
  read(id: string, after: number): Promise<JobPage | undefined>;
  cancel(id: string, principal: string | undefined, reason: string): Promise<Cancelled>;
  approve(id: string, principal: string | undefined, approval: string, decision: Decision): Promise<Approved>;
  watch(id: string, watcher: Watcher): () => void;

  /** What waits for a replica, oldest first; `done` takes it away. */
  inbox(owner: string): Promise<readonly Command[]>;
  done(owner: string, commands: readonly Command[]): Promise<void>;

  /** False: the lease had run out, and others may have taken the replica for dead. */
  renew(owner: string): Promise<boolean>;
  /** The replica leaves, with nothing running. */
  retire(owner: string): Promise<void>;
  /** Replicas that have or had jobs, and whether each is alive. */
  owners(): Promise<ReadonlyMap<string, boolean>>;
  alive(owner: string): Promise<boolean>;
  jobsOf(owner: string): Promise<readonly string[]>;
  /** Ends a job of a dead owner, if it is still running and has not grown. */
  reap(record: JobRecord, batch: Batch): Promise<Reaped>;
  /** Takes a job that is not the owner's any more off its list. */
  strike(id: string, owner: string): Promise<void>;
  /** Forgets a dead owner that has no jobs left. */
  bury(owner: string): Promise<void>;

  /** Since when, on the clock of `performance.now`, the store has answered in time and lost nothing. */
  steadySince(): number;
  /** Whether state was lost so recently that owners may still be bringing it back. */
  recovering(id: string): Promise<boolean>;
}

/** A replica without a sign of life for so long may be dead. */
export const LEASE_MS = 10_000;
/** Work that waits in one inbox. */
export const MAX_INBOX = 10_000;
/** How long owners have to bring back what the store lost, before a stranger is told that there is no such job. */
export const RECOVERY_MS = 5_000;
