import type { Batch } from './group.ts';

/**
 * Why a follower is told that its position no longer holds:
 *
 *     expired        events after the position were trimmed or are too old
 *     epoch_changed  the store lost or may have lost its state since the position was given
 *     unknown_id     the id is not one of ours
 *     ahead_of_head  the position lies beyond the store's last number
 *     gap            an event did not arrive on a live feed; should never happen
 */
export const RESYNC_REASONS = ['expired', 'epoch_changed', 'unknown_id', 'ahead_of_head', 'gap'] as const;
export type ResyncReason = (typeof RESYNC_REASONS)[number];

export interface Resync {
  readonly reason: ResyncReason;
  /** Names; for a whole partition also the patterns as they were asked for. All that is kept of them follows. */
  readonly channels: readonly string[];
}

/** Where a follower's events go. Called in order, never inside a call to the hub. */
export interface Sink {
  /**
   * Following begins. `position` is what an id carries behind its prefix; absent when a cursor was given and could not be
   * honoured, so that its owner goes on to repeat it until it has received something.
   */
  connected(position: string | undefined, resumed: boolean): void;
  resync(notice: Resync): void;
  /** It has everything that has arrived here, and is given the rest as it comes. */
  level?(): void;
  /** How many events it would take at once while it catches up; absent: as many as there are. At least 1. */
  room?(): number;
  /** False: take nothing more until `resume`. The batch itself has been taken all the same. */
  events(batch: Batch): boolean;
}
