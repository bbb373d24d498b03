/** When a backend is asked again. Only ever before the first byte of its answer: after that the answer has been begun. */
export interface RetryRules {
  /** How often a request is repeated. Default 2. */
  readonly retries?: number;
  /** Before the first repetition; each further one waits twice as long. Default 250. */
  readonly firstDelayMs?: number;
  /** Default 5,000. */
  readonly longestDelayMs?: number;
  /** A backend that wants to be left alone for longer is not waited for: the caller hears when to come back. Default 10,000. */
  readonly longestRetryAfterMs?: number;
}

/** Besides these only failed connections are tried again. */
export const RETRIED_STATUSES: ReadonlySet<number> = new Set([408, 409, 429, 500, 502, 503, 504]);

/** A day: more is nonsense, and would not fit into a timer. */
const LONGEST_HEEDED_MS = 86_400_000;

/** Seconds, or a date of HTTP; in milliseconds from now. */
export const parseRetryAfter = (header: string | undefined, now: number): number | undefined => {
  const text = header?.trim() ?? '';
  if (text === '') return undefined;
  const seconds = /^\d+(\.\d+)?$/.test(text);
  const ms = seconds ? Number(text) * 1_000 : /^[a-z]/i.test(text) ? Date.parse(text) - now : Number.NaN;
  return Number.isFinite(ms) ? Math.min(Math.max(0, Math.round(ms)), LONGEST_HEEDED_MS) : undefined;
};

/** How long to wait before the repetition number `attempt` (from 0); undefined: do not repeat. */
export const retryDelay = (
  attempt: number,
  retryAfterMs: number | undefined,
  rules: RetryRules,
  random: () => number = Math.random,
): number | undefined => {
  const { retries = 2, firstDelayMs = 250, longestDelayMs = 5_000, longestRetryAfterMs = 10_000 } = rules;
  if (attempt >= retries) return undefined;
  // Spread, so that all who were refused together do not come back together.
  const delay = Math.min(firstDelayMs * 2 ** attempt, longestDelayMs) * (0.5 + random());
  if (retryAfterMs === undefined) return delay;
  return retryAfterMs > longestRetryAfterMs ? undefined : Math.max(retryAfterMs, delay);
};
