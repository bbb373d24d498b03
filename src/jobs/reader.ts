import type { JobEntry } from './entry.ts';
import type { EndState } from './job.ts';
import type { Track, Waiter } from './track.ts';

/**
 * Why a reader is told that its position no longer holds:
 *
 *     collapsed  events behind it are no longer kept
 *     ahead      it lies beyond the last event, because the store went back or it was made up
 *     unknown    it is not a position at all
 */
export type ResetReason = 'collapsed' | 'ahead' | 'unknown';

export interface Reset {
  readonly reason: ResetReason;
  /** Stands for everything before `from`, if the kind has such a thing and something is missing. */
  readonly snapshot: string | undefined;
  /** The number of the event that comes next. */
  readonly from: number;
  readonly state: 'running' | EndState;
}

export type Taken =
  | { readonly what: 'reset'; readonly reset: Reset }
  | { readonly what: 'events'; readonly events: readonly JobEntry[] }
  /** Everything was taken, the terminal event too. */
  | { readonly what: 'end'; readonly state: EndState };

/** A position in a job's stream. It takes when it can; there is no queue. */
export class JobReader implements Waiter {
  readonly track: Track;
  private readonly left: () => void;
  private position: number;
  private unknown: boolean;
  private replaced: number;
  private ended: EndState | undefined;
  private awake: () => void = () => {};

  /** `after` undefined: the position was given and could not be understood. */
  constructor(track: Track, after: number | undefined, left: () => void) {
    this.track = track;
    this.position = after ?? 0;
    this.unknown = after === undefined;
    this.left = left;
    this.replaced = track.replaced;
    track.waiters.add(this);
  }

  /** Everything was taken before: there is nothing to come back for. */
  get atEnd(): boolean {
    return this.track.over && this.position === this.track.last;
  }

  /** Called when there may be something to take. */
  onWake(awake: () => void): void {
    this.awake = awake;
  }

  wake(): void {
    this.awake();
  }

  /** What comes next, at most so many events; undefined: nothing yet. */
  take(max = Number.POSITIVE_INFINITY): Taken | undefined {
    const { track } = this;
    if (this.ended) return { what: 'end', state: this.ended }; // whatever becomes of the stream: it was told
    if (this.unknown) {
      this.unknown = false;
      return this.reset('unknown');
    }
    if (this.position > track.last || this.replaced !== track.replaced) {
      this.replaced = track.replaced;
      return this.reset('ahead');
    }
    if (this.position < track.first - 1) {
      if (this.position < track.from - 1) return this.reset('collapsed');
      track.want(this.position);
      return undefined;
    }
    const events = track.after(this.position, max);
    const end = events.at(-1);
    if (end) {
      this.position = end.seq;
      return { what: 'events', events };
    }
    if (!track.over) return undefined;
    this.ended = track.state as EndState;
    return { what: 'end', state: this.ended };
  }

  close(): void {
    if (this.track.waiters.delete(this)) this.left();
  }

  private reset(reason: ResetReason): Taken {
    const { from, snapshot, state } = this.track;
    this.position = from - 1;
    return { what: 'reset', reset: { reason, snapshot, from, state } };
  }
}
