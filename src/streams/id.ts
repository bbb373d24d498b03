import type { Place } from './position.ts';

/**
 * An event id is a UUIDv7 that carries its own position, so that the `id:` line, the JSON id, the Redis stream id and the
 * cursor are one thing:
 *
 *     48 bits ms | 7 | 12 bits seq high | 10 | 36 bits seq low | 4 bits partition | 22 bits epoch
 *
 * Ids are guessable by design and never secrets.
 */
const SEQ_LOW = 2 ** 36;
const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7([0-9a-f]{3})-([89ab][0-9a-f]{3})-([0-9a-f]{12})$/;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

export const encodeUuid = ({ ms, seq, partition, epoch }: Place): string => {
  const time = hex(ms, 12);
  const low = seq % SEQ_LOW;
  const upper = hex(0x8000_0000 + Math.floor(low / 64), 8);
  const lower = hex((low % 64) * 2 ** 26 + partition * 2 ** 22 + epoch, 8);
  const high = hex(Math.floor(seq / SEQ_LOW), 3);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${high}-${upper.slice(0, 4)}-${upper.slice(4)}${lower}`;
};

/** Undefined for anything that `encodeUuid` cannot have written. */
export const decodeUuid = (text: string): Place | undefined => {
  const match = UUID_V7.exec(text);
  if (!match) return undefined;
  const [, time1 = '', time2 = '', high = '', upper = '', rest = ''] = match;
  const top = Number.parseInt(upper + rest.slice(0, 4), 16) - 0x8000_0000; // below 2^30: the variant bits are checked above
  const bottom = Number.parseInt(rest.slice(4), 16);
  const low = top * 64 + Math.floor(bottom / 2 ** 26);
  return {
    ms: Number.parseInt(time1 + time2, 16),
    seq: Number.parseInt(high, 16) * SEQ_LOW + low,
    partition: Math.floor(bottom / 2 ** 22) % 16,
    epoch: bottom % 2 ** 22,
  };
};

/** The 16 bytes of the same UUID as 22 base64url characters, for the other partitions of a cursor. */
export const encodeCompact = (place: Place): string =>
  Buffer.from(encodeUuid(place).replaceAll('-', ''), 'hex').toString('base64url');

export const decodeCompact = (text: string): Place | undefined => {
  if (!/^[\w-]{22}$/.test(text)) return undefined;
  const digits = Buffer.from(text, 'base64url').toString('hex');
  const place = decodeUuid(
    `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`,
  );
  // 22 characters hold four bits more than 16 bytes; only the canonical spelling is ours.
  return place && encodeCompact(place) === text ? place : undefined;
};
