interface Sample {
  readonly offset: number;
  /** The true offset is at most this far away: half of the round trip. */
  readonly error: number;
}

const SAMPLES = 8;

/** The store's clock as seen from here, from round trips that asked it for the time. */
export class StoreClock {
  private samples: Sample[] = [];
  private best: Sample | undefined;
  private readonly local: () => number;

  constructor(local: () => number = () => performance.now()) {
    this.local = local;
  }

  /** `sent` and `back` on the local clock, `time` on the store's. */
  learn(sent: number, back: number, time: number): void {
    const sample = { offset: time - (sent + back) / 2, error: (back - sent) / 2 + 1 }; // + 1: the store's time is cut to whole ms
    const known = this.best;
    // A clock that was set differs by more than both errors explain: what was learnt before is void.
    if (known && Math.abs(sample.offset - known.offset) > sample.error + known.error) this.samples = [];
    this.samples = [...this.samples.slice(1 - SAMPLES), sample];
    this.best = this.samples.reduce((a, b) => (b.error <= a.error ? b : a));
  }

  now(): number {
    return this.best ? this.local() + this.best.offset : Date.now();
  }

  /** How long to wait on the local clock until the store's has certainly passed a time. */
  untilPassed(time: number): number {
    return Math.max(0, time - this.now() + (this.best?.error ?? 0) + 1);
  }
}
