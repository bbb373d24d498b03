import type { EndState, JobEvent, JobFacts, JobLog } from './job.ts';
import type { Batch, BatchEnd } from './store.ts';

/**
 * Why a job is ended by somebody else than its own work:
 *
 *     error       the work threw, or returned without an end
 *     too_large   its stream outgrew the limits of its kind, which has no snapshot to collapse into
 *     cancelled   it was cancelled and did not end by itself in time
 *     shutdown    its gateway stops and could not wait any longer
 *     owner_lost  its gateway is gone
 *     store_lost  its gateway and the stored stream are both gone
 */
export type Cause = 'error' | 'too_large' | 'cancelled' | 'shutdown' | 'owner_lost' | 'store_lost';

export const stateOf = (cause: Cause): EndState =>
  cause === 'cancelled' ? 'cancelled' : cause === 'error' || cause === 'too_large' ? 'failed' : 'interrupted';

export interface Ending {
  readonly cause: Cause;
  /** One sentence, fit to be shown. */
  readonly message: string;
  /** What the work threw. */
  readonly error?: unknown;
}

/** All that differs between jobs of different protocols, declared in one place for each kind. */
export interface JobKind {
  /** For the store, logs and metrics; every replica must know it. */
  readonly name: string;
  /** How long a job is known after its end. */
  readonly keepMs: number;
  /** How long its whole stream is kept after its end; later the snapshot and the last event stand for it. */
  readonly logMs: number;
  /** What the stream may hold before it collapses, or the job fails if it cannot. */
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** The events that end a job for which its work cannot speak any more. At least one; the last is the terminal event. */
  ended(log: JobLog, ending: Ending, facts: JobFacts): readonly string[];
  /**
   * What stands for `before` (if anything was collapsed already) and the events behind it. A kind without one never
   * collapses: its stream is whole, or its job has failed.
   */
  snapshot?(before: string | undefined, events: readonly JobEvent[], facts: JobFacts): string;
}

/** What becomes of a job of this kind behind its end; `before` is all of its stream but the terminal event. */
export const endOf = (
  kind: JobKind,
  facts: JobFacts,
  state: EndState,
  before: Pick<JobLog, 'snapshot' | 'events'>,
): BatchEnd => {
  const { keepMs, logMs } = kind;
  // Only a stream that is forgotten before its job needs something in its place.
  const snapshot = logMs < keepMs ? kind.snapshot?.(before.snapshot, before.events, facts) : undefined;
  return { state, keepMs, logMs, snapshot };
};

/**
 * What was ended over its owner's head is remembered for longer than the owner can be frozen: with the record the fence
 * would be gone, and an owner that comes back would take the job for one that the store has lost.
 */
const FENCE_MS = 7 * 24 * 60 * 60 * 1_000;

/** The last events of a job for which its work cannot speak any more. */
export const lastWords = (
  kind: JobKind,
  facts: JobFacts,
  log: JobLog,
  ending: Ending,
): Batch & { readonly end: BatchEnd } => {
  let words: readonly string[];
  try {
    words = kind.ended(log, ending, facts);
  } catch {
    words = []; // a job ends, whatever its kind does
  }
  if (words.length === 0) words = [JSON.stringify({ error: ending.message })];
  const state = stateOf(ending.cause);
  const events = words.map((data, i) => ({ seq: log.last + 1 + i, data }));
  const final = events.pop() as JobEvent;
  const end = endOf(kind, facts, state, { snapshot: log.snapshot, events: [...log.events, ...events] });
  const fenced = ending.cause === 'owner_lost' || ending.cause === 'store_lost';
  return {
    events: [...events, { ...final, end: state }],
    asks: [],
    end: fenced ? { ...end, keepMs: Math.max(end.keepMs, FENCE_MS) } : end,
  };
};
