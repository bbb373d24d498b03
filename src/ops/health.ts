import type { PartitionHealth } from '../streams/log.ts';

/** A store that has not answered for this long makes the replica not ready; before that, waiting is the better service. */
const OVERDUE_MS = 60_000;

export interface Readiness {
  readonly ready: boolean;
  /** One sentence each. */
  readonly reasons: readonly string[];
  readonly store: readonly PartitionHealth[];
}

export interface HealthSources {
  readonly store: () => readonly PartitionHealth[];
  /** Every partition has been loaded once. */
  readonly loaded: () => boolean;
  readonly draining: () => boolean;
}

export const readiness = ({ store, loaded, draining }: HealthSources): Readiness => {
  const partitions = store();
  const reasons: string[] = [];
  if (draining()) reasons.push('The gateway is about to stop.');
  if (!loaded()) reasons.push('The store has not been loaded yet.');
  for (const [i, { markAgeMs }] of partitions.entries()) {
    if (loaded() && (markAgeMs === undefined || markAgeMs > OVERDUE_MS)) {
      reasons.push(`No mark has come back from partition ${i} for ${Math.round((markAgeMs ?? 0) / 1_000)} s.`);
    }
  }
  return { ready: reasons.length === 0, reasons, store: partitions };
};
