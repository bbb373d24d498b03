import fc from 'fast-check';
import { type Cursor, decodeCursor, encodeCursor, ID_PREFIXES } from '../../src/streams/cursor.ts';
import { MAX_EPOCH, MAX_MS, MAX_SEQ } from '../../src/streams/position.ts';

const anyCursor: fc.Arbitrary<Cursor> = fc.integer({ min: 1, max: 16 }).chain((partitions) =>
  fc.record({
    prefix: fc.constantFrom(...ID_PREFIXES),
    leading: fc.integer({ min: 0, max: partitions - 1 }),
    places: fc.tuple(
      ...Array.from({ length: partitions }, (_, partition) =>
        fc.record({
          ms: fc.integer({ min: 0, max: MAX_MS }),
          seq: fc.integer({ min: 0, max: MAX_SEQ }),
          epoch: fc.integer({ min: 0, max: MAX_EPOCH }),
          partition: fc.constant(partition),
        }),
      ),
    ),
  }),
);

const one = 'msg-01980000-0000-7000-8000-000028000001';
const four = encodeCursor({
  prefix: 'msg',
  leading: 2,
  places: [0, 1, 2, 3].map((partition) => ({ ms: 5, seq: partition + 1, partition, epoch: 9 })),
});

describe('a cursor', () => {
  it('is its text and its text is the cursor, for every number of partitions', () => {
    fc.assert(
      fc.property(anyCursor, (cursor) => {
        expect(decodeCursor(encodeCursor(cursor), cursor.places.length)).toEqual(cursor);
      }),
      { numRuns: 1_000 },
    );
  });

  it('names one partition by its UUID alone and the others behind tildes', () => {
    expect(decodeCursor(one, 1)).toMatchObject({ prefix: 'msg', leading: 0, places: [{ partition: 0, epoch: 1 }] });
    expect(four).toMatch(/^msg-[0-9a-f-]{36}(~[\w-]{22}){3}$/);
  });

  it('stays short enough for a header even with all partitions', () => {
    const places = Array.from({ length: 16 }, (_, partition) => ({
      ms: MAX_MS,
      seq: MAX_SEQ,
      partition,
      epoch: MAX_EPOCH,
    }));
    expect(encodeCursor({ prefix: 'status', leading: 0, places }).length).toBeLessThan(500);
  });

  it.each([
    ['nothing', '', 1],
    ['a number', '42', 1],
    ['another prefix', one.replace('msg', 'job'), 1],
    ['no prefix', one.slice(4), 1],
    ['another version of UUID', one.replace('-7000-', '-4000-'), 1],
    ['capital letters', one.toUpperCase(), 1],
    ['a partition that this log does not have', one, 4],
    ['too many partitions', four, 1],
    ['too few partitions', four.slice(0, -23), 4],
    ['a partition twice', `${four.slice(0, -23)}${four.slice(-46, -23)}`, 4],
    [
      'the others in another order',
      `${four.slice(0, 40)}${four.slice(-23)}${four.slice(63, 86)}${four.slice(40, 63)}`,
      4,
    ],
    [
      'a spelling with loose bits',
      `${four.slice(0, -1)}${String.fromCharCode(four.charCodeAt(four.length - 1) + 1)}`,
      4,
    ],
    ['line ends', `${one}\n`, 1],
    ['a NUL', `${one}\0`, 1],
    ['a very long text', `msg-${'~'.repeat(100_000)}`, 4],
  ])('is unknown if it is %s', (_, text, partitions) => {
    expect(decodeCursor(text, partitions)).toBeUndefined();
  });

  it('is never an exception, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((s) => `${one}${s}`),
        ),
        fc.integer({ min: 1, max: 16 }),
        (text, n) => {
          const cursor = decodeCursor(text, n);
          if (cursor) expect(encodeCursor(cursor)).toBe(text);
        },
      ),
    );
  });
});
