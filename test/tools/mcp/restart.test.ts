import { Restart } from '../../../src/tools/mcp/restart.ts';

const times = { firstMs: 500, longestMs: 30_000, stableMs: 10_000 };

describe('the delay before a restart', () => {
  it('doubles up to its limit', () => {
    const restart = new Restart(times, () => 1);
    const delays = Array.from({ length: 9 }, () => restart.delayAfter(0));
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('is spread, so that servers that fell together do not come back together', () => {
    expect(new Restart(times, () => 0).delayAfter(0)).toBe(250);
    expect(new Restart(times, () => 0.5).delayAfter(0)).toBe(375);
  });

  it('begins anew only after a life that was long enough', () => {
    const restart = new Restart(times, () => 1);
    restart.delayAfter(0);
    expect(restart.delayAfter(9_999)).toBe(1_000);
    expect(restart.delayAfter(10_000)).toBe(500);
  });

  it('is nothing after an end that was expected, but not again and again', () => {
    const restart = new Restart(times, () => 1);
    expect(restart.delayAfter(5, true)).toBe(0);
    expect(restart.delayAfter(5, true)).toBe(1_000);
    expect(restart.delayAfter(10_000, true)).toBe(0);
  });
});
