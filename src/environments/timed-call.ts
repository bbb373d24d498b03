import type { Episode, EpisodeCall, Outcome } from './environment.ts';
import { MAX_TIMER_MS } from './pause.ts';
import { untilAborted } from './until-aborted.ts';

export class CallTimeout extends Error {
  override readonly name = 'CallTimeout';
}

export interface TimedCall {
  /** What it brings, or why it was ended. */
  readonly outcome: Promise<Outcome>;
  /** Settles when the work is really over; never throws. */
  readonly over: Promise<void>;
}

/** Calls a tool, and tells it to stop when its time is over (in ms; 0: none) or its session ends: nobody waits then. */
export const timedCall = (
  episode: Episode,
  call: Omit<EpisodeCall, 'signal'>,
  limitMs: number,
  ending: AbortSignal,
): TimedCall => {
  ending.throwIfAborted(); // it may have ended while the call was on its way here
  const limit = Math.min(limitMs, MAX_TIMER_MS);
  // One listener on the session's signal for each call, taken away with it: a session may see a million.
  const stop = new AbortController();
  const leave = (): void => stop.abort(ending.reason);
  ending.addEventListener('abort', leave, { once: true });
  const late = (): void => stop.abort(new CallTimeout(`${call.name} took longer than ${limit / 1_000} s.`));
  const timer = limit > 0 ? setTimeout(late, limit) : undefined;
  const work = episode.call({ ...call, signal: stop.signal });
  const outcome = untilAborted(stop.signal, () => work).finally(() => {
    clearTimeout(timer);
    ending.removeEventListener('abort', leave);
  });
  const over = work.then(
    () => {},
    () => {},
  );
  return { outcome, over };
};
