import { untilAborted } from './until-aborted.ts';

/** The longest wait that a timer can do. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

// Timers of the global kind, so that a test can turn the clock.

/** Resolves to `late` if the work takes longer than so many ms, otherwise to what it gives. The work itself goes on. */
export const within = async <T>(ms: number, work: Promise<T>): Promise<T | 'late'> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), Math.min(ms, MAX_TIMER_MS)).unref();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};

/** Ends early with the reason of the signal. */
export const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const over = (): Promise<void> =>
    new Promise((resolve) => {
      timer = setTimeout(resolve, ms).unref();
    });
  try {
    await untilAborted(signal, over);
  } finally {
    clearTimeout(timer);
  }
};
