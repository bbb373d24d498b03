import { StoreClock } from '../../../src/streams/redis/clock.ts';

describe("the store's clock", () => {
  it('is told from the round trip that tells it best', () => {
    let local = 0;
    const clock = new StoreClock(() => local);
    clock.learn(0, 100, 5_010); // taken at 10, seen at the end of a slow way back: off by 40
    clock.learn(200, 202, 5_201);
    clock.learn(300, 400, 5_390);
    local = 1_000;
    expect(clock.now()).toBe(6_000);
  });

  it('never says that a time has passed before it has', () => {
    let local = 0;
    const clock = new StoreClock(() => local);
    const truth = (): number => local + 5_000;
    for (const [sent, taken, back] of [
      [0, 9, 10],
      [20, 21, 60],
      [100, 103, 104],
    ] as const) {
      clock.learn(sent, back, Math.floor(taken + 5_000));
      local = back;
      const deadline = truth() + 2_000;
      local += clock.untilPassed(deadline);
      expect(truth()).toBeGreaterThan(deadline);
    }
  });

  it('follows when the clock of the store is set', () => {
    let local = 0;
    const clock = new StoreClock(() => local);
    clock.learn(0, 2, 1_000);
    clock.learn(10, 90, 900_000);
    local = 100;
    expect(Math.abs(clock.now() - 900_050)).toBeLessThan(60);
  });
});
