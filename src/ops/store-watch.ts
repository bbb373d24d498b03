import type { Logger } from 'pino';
import type { PartitionHealth } from '../streams/log.ts';

const EVERY_MS = 1_000;

/** Tells the log when the store goes away and when it is back; returns what ends the watch. */
export const watchStore = (
  health: () => readonly PartitionHealth[],
  logger: Pick<Logger, 'info' | 'warn'>,
  every: (look: () => void) => () => void = (look) => {
    const timer = setInterval(look, EVERY_MS).unref();
    return () => clearInterval(timer);
  },
): (() => void) => {
  let wasUp = true;
  return every(() => {
    const down = health().flatMap(({ up, lastError }, partition) => (up ? [] : [{ partition, lastError }]));
    const up = down.length === 0;
    if (up && !wasUp) logger.info('The store is back.');
    if (!up && wasUp) logger.warn({ partitions: down }, 'The store is away; streams wait and publishing is refused.');
    wasUp = up;
  });
};
