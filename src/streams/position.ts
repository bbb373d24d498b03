/**
 * A place in one partition of the log. `seq` orders; `ms` is the store time of that number and rides along because the
 * Redis stream id is `<ms>-<seq>`, so that a position can be read from without looking anything up.
 */
export interface Position {
  readonly ms: number;
  readonly seq: number;
}

/** Before everything: a follower here receives all that is kept. */
export const ORIGIN: Position = { ms: 0, seq: 0 };

/** A position together with what makes it comparable: numbers of different partitions or epochs have no order. */
export interface Place extends Position {
  readonly partition: number;
  readonly epoch: number;
}

export const MAX_PARTITIONS = 16; // 4 bits of an id
export const MAX_EPOCH = 2 ** 22 - 1; // 22 bits of an id
export const MAX_SEQ = 2 ** 48 - 1; // 48 bits of an id
export const MAX_MS = 2 ** 48 - 1; // the time field of a UUIDv7
