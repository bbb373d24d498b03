import { isChannelName, isChannelPattern, matchesPattern } from '../../src/streams/channel-name.ts';

describe('channel names and patterns', () => {
  it.each(['a', 'content.published', 'agent-1.status_2', 'A.B.C', 'x'.repeat(255)])('%s is a name', (name) => {
    expect(isChannelName(name)).toBe(true);
  });

  it.each(['', '.', 'a.', '.a', 'a..b', 'a b', 'a,b', 'a.*', 'a.#', 'é', 'a\n', 'a\0', 'x'.repeat(256)])(
    '%j is not a name',
    (name) => {
      expect(isChannelName(name)).toBe(false);
    },
  );

  it.each(['a', '*', '#', 'a.*', '*.b', 'a.*.c', 'a.#', '*.#'])('%s is a pattern', (pattern) => {
    expect(isChannelPattern(pattern)).toBe(true);
  });

  it.each(['', '#.a', 'a.#.b', 'a*', 'a.b#', '**', 'a..*'])('%j is not a pattern', (pattern) => {
    expect(isChannelPattern(pattern)).toBe(false);
  });

  it.each([
    ['a.b', 'a.b', true],
    ['a.b', 'a.c', false],
    ['a.*', 'a.b', true],
    ['a.*', 'a', false],
    ['a.*', 'a.b.c', false],
    ['*.b', 'a.b', true],
    ['*', 'a', true],
    ['*', 'a.b', false],
    ['#', 'a', true],
    ['#', 'a.b.c', true],
    ['a.#', 'a.b', true],
    ['a.#', 'a.b.c', true],
    ['a.#', 'a', false],
    ['a.#', 'b.c', false],
    ['a.*.c', 'a.b.c', true],
    ['a.*.c', 'a.b.d', false],
  ])('%s finds %s: %s', (pattern, channel, expected) => {
    expect(matchesPattern(pattern, channel)).toBe(expected);
  });
});
