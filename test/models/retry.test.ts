import { parseRetryAfter, retryDelay } from '../../src/models/retry.ts';

describe('Retry-After', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  it.each([
    ['5', 5_000],
    ['0', 0],
    ['0.5', 500],
    [' 7 ', 7_000],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['99999999999', 86_400_000],
    ['soon', undefined],
    ['-5', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('%s is %s ms', (header, ms) => {
    expect(parseRetryAfter(header, now)).toBe(ms);
  });
});

describe('the wait before a repetition', () => {
  const even = () => 0.5;

  it('doubles, has a longest, and an end', () => {
    const rules = { retries: 5, firstDelayMs: 100, longestDelayMs: 500 };
    expect([0, 1, 2, 3, 4, 5].map((n) => retryDelay(n, undefined, rules, even))).toEqual([
      100,
      200,
      400,
      500,
      500,
      undefined,
    ]);
    expect([0, 1, 2].map((n) => retryDelay(n, undefined, {}, even))).toEqual([250, 500, undefined]);
  });

  it('is spread from half to one and a half', () => {
    expect(retryDelay(0, undefined, { firstDelayMs: 100 }, () => 0)).toBe(50);
    expect(retryDelay(0, undefined, { firstDelayMs: 100 }, () => 0.999)).toBeCloseTo(149.9);
  });

  it('is as long as the backend says, never shorter, and not at all when that is too long', () => {
    expect(retryDelay(0, 3_000, {}, even)).toBe(3_000);
    expect(retryDelay(0, 0, {}, even)).toBe(250);
    expect(retryDelay(0, 10_001, {}, even)).toBeUndefined();
    expect(retryDelay(0, 10_001, { longestRetryAfterMs: 20_000 }, even)).toBe(10_001);
  });
});
