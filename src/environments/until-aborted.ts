/** What the work gives, or the signal's reason as soon as it is aborted. The work itself is left to notice the signal. */
export const untilAborted = async <T>(signal: AbortSignal, work: () => T | Promise<T>): Promise<T> => {
  signal.throwIfAborted();
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([(async () => work())(), aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
};
