import fc from 'fast-check';
import { decodeCompact, decodeUuid, encodeCompact, encodeUuid } from '../../src/streams/id.ts';
import { MAX_EPOCH, MAX_MS, MAX_PARTITIONS, MAX_SEQ, type Place } from '../../src/streams/position.ts';

const anyPlace: fc.Arbitrary<Place> = fc.record({
  ms: fc.integer({ min: 0, max: MAX_MS }),
  seq: fc.integer({ min: 0, max: MAX_SEQ }),
  partition: fc.integer({ min: 0, max: MAX_PARTITIONS - 1 }),
  epoch: fc.integer({ min: 0, max: MAX_EPOCH }),
});

const corners: Place[] = [0, 1].flatMap((bit) => [
  { ms: bit * MAX_MS, seq: 0, partition: 0, epoch: 0 },
  { ms: 0, seq: bit * MAX_SEQ, partition: 0, epoch: 0 },
  { ms: 0, seq: bit * 2 ** 36, partition: 15, epoch: 0 },
  { ms: 0, seq: bit * (2 ** 36 - 1), partition: 0, epoch: MAX_EPOCH },
]);

describe('an event id', () => {
  it('carries its place and gives it back exactly', () => {
    fc.assert(
      fc.property(anyPlace, (place) => {
        expect(decodeUuid(encodeUuid(place))).toEqual(place);
        expect(decodeCompact(encodeCompact(place))).toEqual(place);
      }),
      { examples: corners.map((place) => [place]), numRuns: 2_000 },
    );
  });

  it('is a UUID of version 7 whose time field is the store time', () => {
    expect(encodeUuid({ ms: 0x0198_0000_abcd, seq: 42, partition: 3, epoch: 7 })).toMatch(
      /^01980000-abcd-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  it('sorts as text in the order of time and number', () => {
    fc.assert(
      fc.property(anyPlace, fc.integer({ min: 1, max: 1000 }), (place, step) => {
        fc.pre(place.seq + step <= MAX_SEQ);
        expect(encodeUuid(place) < encodeUuid({ ...place, seq: place.seq + step })).toBe(true);
      }),
    );
  });

  it('is nothing else than what was encoded: every other text is refused without an exception', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.uuid(), fc.string({ minLength: 22, maxLength: 22 })), (text) => {
        const uuid = decodeUuid(text);
        if (uuid) expect(encodeUuid(uuid)).toBe(text);
        const compact = decodeCompact(text);
        if (compact) expect(encodeCompact(compact)).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });
});
