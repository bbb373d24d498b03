/** How a job may end. */
export const END_STATES = ['completed', 'failed', 'cancelled', 'interrupted'] as const;
export type EndState = (typeof END_STATES)[number];
export type JobState = 'running' | EndState;

export interface JobEvent {
  /** Dense, from 1. */
  readonly seq: number;
  /** Opaque here: what a dialect writes. */
  readonly data: string;
  /** On the terminal event alone. */
  readonly end?: EndState;
}

/** A job's stream as far as it is known. */
export interface JobLog {
  /** Stands for everything before `from`. */
  readonly snapshot: string | undefined;
  /** The number of the first event that is kept. */
  readonly from: number;
  readonly last: number;
  readonly events: readonly JobEvent[];
}

export interface Decision {
  readonly approved: boolean;
  /** Whatever the protocol wants to keep with it. */
  readonly note?: string;
}

/** What a job is, for as long as it exists. */
export interface JobFacts {
  readonly id: string;
  readonly kind: string;
  readonly principal: string;
  /** The replica that runs it and alone writes its stream. */
  readonly owner: string;
  /** Small things that the protocol needs to know of it later. */
  readonly about: string;
  /** Store time, ms. */
  readonly created: number;
}

/** What the store knows of a job. */
export interface JobRecord extends JobFacts {
  readonly state: JobState;
  readonly last: number;
  readonly from: number;
  readonly snapshot: string | undefined;
  /** The reason it was cancelled for. */
  readonly cancel: string | undefined;
  /** Undefined: not decided yet. */
  readonly approvals: ReadonlyMap<string, Decision | undefined>;
}
