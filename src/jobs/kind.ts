import type { EndState, JobEvent, JobLog } from './job.ts';

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
  ended(log: JobLog, ending: Ending): readonly string[];
  /**
   * What stands for `before` (if anything was collapsed already) and the events behind it. A kind without one never
   * collapses: its stream is whole, or its job has failed.
   */
  snapshot?(before: string | undefined, events: readonly JobEvent[]): string;
}
