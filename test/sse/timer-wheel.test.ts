import { type Ticker, TimerWheel } from '../../src/sse/timer-wheel.ts';

class Bell implements Ticker {
  readonly rings: number[] = [];
  again: ((now: number) => void) | undefined;

  tick(now: number): void {
    this.rings.push(now);
    this.again?.(now);
  }
}

describe('the timer wheel', () => {
  const wheelAt = (start: number) => {
    const clock = { now: start };
    const wheel = new TimerWheel(() => clock.now);
    const pass = (seconds: number): void => {
      for (let i = 0; i < seconds; i++) {
        clock.now += 1_000;
        wheel.turn();
      }
    };
    return { clock, wheel, pass };
  };

  it('rings in the second that was asked for, once', () => {
    const { wheel, pass } = wheelAt(10_500);
    const bell = new Bell();
    wheel.set(bell, 3);
    pass(2);
    expect(bell.rings).toEqual([]);
    pass(10);
    expect(bell.rings).toEqual([13_500]);
  });

  it('forgets what was set before, and what was removed', () => {
    const { wheel, pass } = wheelAt(0);
    const [moved, removed] = [new Bell(), new Bell()];
    wheel.set(moved, 2);
    wheel.set(moved, 5);
    wheel.set(removed, 2);
    wheel.remove(removed);
    pass(10);
    expect(moved.rings).toEqual([5_000]);
    expect(removed.rings).toEqual([]);
  });

  it('lets what it rings set itself anew', () => {
    const { wheel, pass } = wheelAt(0);
    const bell = new Bell();
    bell.again = () => wheel.set(bell, 30);
    wheel.set(bell, 30);
    pass(100);
    expect(bell.rings).toEqual([30_000, 60_000, 90_000]);
  });

  it('makes up for seconds in which the process was busy', () => {
    const { clock, wheel } = wheelAt(0);
    const bells = [1, 2, 3].map((seconds) => {
      const bell = new Bell();
      wheel.set(bell, seconds);
      return bell;
    });
    clock.now = 60_000;
    wheel.turn();
    expect(bells.map(({ rings }) => rings)).toEqual([[60_000], [60_000], [60_000]]);
  });

  it('survives a clock that is set', () => {
    const { clock, wheel, pass } = wheelAt(0);
    const bell = new Bell();
    wheel.set(bell, 5);
    clock.now = 1e12;
    wheel.turn();
    expect(bell.rings).toHaveLength(1);
    wheel.set(bell, 2);
    pass(3);
    expect(bell.rings).toHaveLength(2);
  });

  it('looks at what lies further away than a turn of the wheel in between', () => {
    const { wheel, pass } = wheelAt(0);
    const bell = new Bell();
    wheel.set(bell, 1e9);
    pass(700);
    expect(bell.rings).toEqual([599_000]);
  });
});
