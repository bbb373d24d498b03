import type { RetryRules } from '../../models/retry.ts';

/** How long things may take, in milliseconds. Each has a default. */
export interface UpstreamTimes {
  /** To have a connection. */
  readonly connectMs: number;
  /** For a whole plain request, except those that wait for the setup. */
  readonly requestMs: number;
  /** Between two signs of life of an episode. */
  readonly pingMs: number;
  /** A call's connection on which nothing has come for so long is lost. The server says something every ten seconds. */
  readonly silentMs: number;
  /**
   * From sending a call that has no task id yet to the head of the answer. Longer than `silentMs`: a tool that is a plain
   * Python function holds up its whole server, the head of its own answer included, and a call that is given up here
   * cannot be asked for again.
   */
  readonly headMs: number;
  /** A call is given up when the upstream could not be reached for so long. */
  readonly giveUpMs: number;
  /** For the teardown. */
  readonly closeMs: number;
}

export const DEFAULT_TIMES: UpstreamTimes = {
  connectMs: 10_000,
  requestMs: 60_000,
  pingMs: 10_000,
  silentMs: 45_000,
  headMs: 300_000,
  giveUpMs: 60_000,
  closeMs: 5_000,
};

/** For plain requests, which give up soon: whoever asked asks again. */
export const REQUEST_RETRIES: RetryRules = { retries: 3, firstDelayMs: 100, longestDelayMs: 2_000 };

/** For calls, which end only with `giveUpMs`. */
export const CALL_RETRIES: RetryRules = { firstDelayMs: 100, longestDelayMs: 2_000 };

export interface UpstreamOptions {
  /** What `${NAME}` in headers stands for. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly times?: Partial<UpstreamTimes>;
  readonly requestRetries?: RetryRules;
  readonly callRetries?: RetryRules;
  /** Bytes of one result. */
  readonly maxResultBytes?: number;
  /** What went wrong where nobody asked: one sentence. */
  readonly warn?: (message: string) => void;
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number;
  readonly random?: () => number;
}
