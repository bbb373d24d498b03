import type { Place } from '../../src/streams/position.ts';

/** An event that somebody tried to publish; its payload is unique. */
export interface Attempt {
  readonly channel: string;
  readonly payload: string;
  /** Where it was stored, if that was acknowledged. */
  place?: Place;
}

/** What the publishers know: the truth that followers are checked against. */
export class Record {
  readonly attempts = new Map<string, Attempt>();
  acknowledged = 0;
  refused = 0;

  try(channel: string, payload: string): void {
    this.attempts.set(payload, { channel, payload });
  }

  acknowledge(payload: string, place: Place): void {
    const attempt = this.attempts.get(payload);
    if (!attempt) throw new Error(`nobody published ${payload}`);
    attempt.place = place;
    this.acknowledged++;
  }
}
