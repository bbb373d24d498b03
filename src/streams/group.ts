import { encodePlaces } from './cursor.ts';
import type { Encoder, Entry } from './entry.ts';
import type { StoredEvent } from './log.ts';
import type { Place } from './position.ts';

/** Some events in order, for one write. */
export interface Batch {
  readonly events: readonly StoredEvent[];
  /** All of them, encoded, in one piece. */
  readonly bytes: Buffer;
}

/** A live follower, as its group sees it. */
export interface Member {
  /** False: it takes nothing more for now and has left. */
  take(batch: Batch): boolean;
}

export interface Arrival {
  readonly partition: number;
  readonly entry: Entry;
}

const EMPTY = Buffer.alloc(0);

/**
 * Encodes arrivals for followers that stand at `places`, and returns where they stand then. With several partitions the
 * `id:` line names the others too, so that it differs with what came in between.
 */
export const makeBatch = (arrivals: readonly Arrival[], encoder: Encoder, places: Place[]): Batch => {
  const pieces: Buffer[] = [];
  const events: StoredEvent[] = [];
  for (const { partition, entry } of arrivals) {
    const epoch = (places[partition] as Place).epoch;
    places[partition] = { ms: entry.ms, seq: entry.seq, partition, epoch };
    pieces.push(places.length === 1 ? entry.encode(encoder) : entry.encodeAt(encoder, encodePlaces(partition, places)));
    events.push(entry.event);
  }
  const [only] = pieces;
  return {
    events,
    bytes: pieces.length === 1 ? (only as Buffer) : pieces.length === 0 ? EMPTY : Buffer.concat(pieces),
  };
};

/** Live followers that get the same bytes: each turn's batch is built once for all of them. */
export class Group {
  readonly members = new Set<Member>();
  private readonly encoder: Encoder;
  private pending: Arrival[] = [];
  private places: Place[] = [];

  constructor(encoder: Encoder) {
    this.encoder = encoder;
  }

  get waiting(): boolean {
    return this.pending.length > 0;
  }

  add(arrival: Arrival): void {
    if (this.members.size > 0) this.pending.push(arrival);
  }

  /** `heads`: where all members stand afterwards. */
  flush(heads: readonly Place[]): number {
    const arrivals = this.pending;
    this.pending = [];
    let delivered = 0;
    if (arrivals.length > 0) {
      const batch = makeBatch(arrivals, this.encoder, this.places);
      for (const member of this.members) {
        if (!member.take(batch)) this.members.delete(member);
        delivered += arrivals.length;
      }
    }
    this.places = [...heads];
    return delivered;
  }

  join(member: Member, heads: readonly Place[]): void {
    this.places = [...heads];
    this.members.add(member);
  }
}
