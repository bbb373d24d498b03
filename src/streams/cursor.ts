import { decodeCompact, decodeUuid, encodeCompact, encodeUuid } from './id.ts';
import type { Place } from './position.ts';

/** What an event is, as its id shows it; `pos` is a position without an event (the first frame, a long-poll answer). */
export const ID_PREFIXES = ['msg', 'status', 'resp', 'err', 'pos'] as const;
export type IdPrefix = (typeof ID_PREFIXES)[number];

/**
 * "I have everything of my channels up to here", once per partition, at index `partition`. The text is the id of the
 * event that was last received, with the places of every other partition behind it:
 *
 *     msg-<uuid>                      one partition
 *     msg-<uuid>~<22>~<22>~<22>       four
 */
export interface Cursor {
  readonly prefix: IdPrefix;
  readonly places: readonly Place[];
  /** The partition whose UUID leads: the one the event came from. */
  readonly leading: number;
}

/** The part of an id behind the prefix. */
export const encodePlaces = (leading: number, places: readonly Place[]): string => {
  const lead = places[leading];
  if (!lead) throw new RangeError(`no place for partition ${leading}`);
  let text = encodeUuid(lead);
  if (places.length > 1) for (const place of places) if (place !== lead) text += `~${encodeCompact(place)}`;
  return text;
};

export const encodeCursor = (cursor: Cursor): string =>
  `${cursor.prefix}-${encodePlaces(cursor.leading, cursor.places)}`;

const isPrefix = (text: string): text is IdPrefix => (ID_PREFIXES as readonly string[]).includes(text);

/** Undefined (`unknown_id`) for anything that this log, with this number of partitions, cannot have sent. */
export const decodeCursor = (text: string, partitions: number): Cursor | undefined => {
  const dash = text.indexOf('-');
  const prefix = text.slice(0, Math.max(dash, 0));
  if (!isPrefix(prefix)) return undefined;
  const [first = '', ...others] = text.slice(dash + 1).split('~', partitions + 1);
  if (others.length !== partitions - 1) return undefined;
  const lead = decodeUuid(first);
  if (!lead) return undefined;
  const places: Place[] = [];
  for (const place of [lead, ...others.map(decodeCompact)]) {
    if (!place || place.partition >= partitions || places[place.partition]) return undefined;
    places[place.partition] = place;
  }
  const cursor: Cursor = { prefix, places, leading: lead.partition };
  return encodeCursor(cursor) === text ? cursor : undefined; // the others in ascending order, no other spelling
};
