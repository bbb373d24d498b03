import { EventRate } from '../../src/limits/event-rate.ts';

const start = (perSecond: number) => {
  const clock = { now: 5_000 };
  return { clock, rate: new EventRate(perSecond, () => clock.now) };
};

describe('events per second of a connection', () => {
  it('lets a second of events through at once', () => {
    const { rate } = start(10);
    for (let i = 0; i < 10; i++) expect(rate.take(1)).toBe(0);
    expect(rate.take(1)).toBe(100);
  });

  it('lets a batch overdraw once, and then makes it wait for all of it', () => {
    const { rate, clock } = start(10);
    expect(rate.take(35)).toBe(2_500);
    clock.now += 2_499;
    expect(rate.take(0)).toBe(1);
    clock.now += 1;
    expect(rate.take(0)).toBe(0);
  });

  it('holds the rate over time, whatever the size of the batches', () => {
    for (const size of [1, 7, 100, 2_500]) {
      const { rate, clock } = start(1_000);
      let sent = 0;
      while (clock.now < 65_000) {
        sent += size;
        clock.now += rate.take(size);
      }
      expect(sent).toBeGreaterThanOrEqual(60_000);
      expect(sent).toBeLessThanOrEqual(61_000 + 2 * size);
    }
  });

  it('saves no more than a second while nothing happens', () => {
    const { rate, clock } = start(10);
    rate.take(10);
    clock.now += 3_600_000;
    expect(rate.take(10)).toBe(0);
    expect(rate.take(1)).toBe(100);
  });

  it('is off at 0', () => {
    expect(start(0).rate.take(1_000_000)).toBe(0);
  });
});

it('has room for what a second allows, less what was sent, and always for one', () => {
  let now = 0;
  const rate = new EventRate(100, () => now);
  expect(rate.room()).toBe(100);
  rate.take(70);
  expect(rate.room()).toBe(30);
  rate.take(70);
  expect(rate.room()).toBe(1);
  now = 900;
  expect(rate.room()).toBe(50);
  expect(new EventRate(0).room()).toBe(Number.POSITIVE_INFINITY);
});
