import fc from 'fast-check';
import { missed } from '../../src/streams/missed.ts';

describe('what was missed', () => {
  it.each([
    ['the next kept event follows on what is known', 10, { prev: 10 }, 12, false],
    ['the next kept event follows on something older', 10, { prev: 3 }, 12, false],
    ['an event before the next kept one is gone', 10, { prev: 11 }, 12, true],
    ['nothing is kept and nothing came', 10, undefined, 10, false],
    ['nothing is kept and the channel was quiet since long before', 10, undefined, 2, false],
    ['nothing is kept but something came', 10, undefined, 11, true],
  ])('%s', (_, after, first, last, expected) => {
    expect(missed(after, first, last)).toBe(expected);
  });

  it('is exact: true if and only if an event after the position has left the buffer', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 20 }), // a channel's numbers, with holes
        fc.nat(20), // how many of them are kept
        fc.integer({ min: 0, max: 60 }),
        (numbers, keep, after) => {
          const all = numbers.sort((a, b) => a - b);
          const gone = all.slice(0, Math.max(0, all.length - keep));
          const kept = all.slice(gone.length).map((seq, i) => ({ seq, prev: all[gone.length + i - 1] ?? 0 }));
          const first = kept.find(({ seq }) => seq > after);
          expect(missed(after, first, all.at(-1) ?? 0)).toBe(gone.some((seq) => seq > after));
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
