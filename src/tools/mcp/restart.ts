export interface RestartTimes {
  /** Before the first new attempt; doubled for every further one. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** What has worked for so long begins again with the first delay. */
  readonly stableMs: number;
}

export const RESTART_TIMES: RestartTimes = { firstMs: 500, longestMs: 30_000, stableMs: 10_000 };

/** How long to wait before something is started again. */
export class Restart {
  private readonly times: RestartTimes;
  private readonly random: () => number;
  private attempts = 0;

  constructor(times: RestartTimes, random: () => number = Math.random) {
    this.times = times;
    this.random = random;
  }

  /** The delay after a life of so many ms; 0 if it never came to life. `expected`: nothing is broken, come back at once. */
  delayAfter(livedMs: number, expected = false): number {
    const { firstMs, longestMs, stableMs } = this.times;
    if (livedMs >= stableMs) this.attempts = 0;
    const attempt = this.attempts++;
    // Something that ends again and again is broken, however regular each end was.
    if (expected && attempt === 0) return 0;
    // Between a half and the whole: servers that fell together do not all come back in the same moment.
    return Math.min(firstMs * 2 ** attempt, longestMs) * (0.5 + this.random() / 2);
  }
}
