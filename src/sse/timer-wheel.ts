/** Something that is looked at when it is due. */
export interface Ticker {
  /** Sets itself anew if it wants to be looked at again. `nowMs` since the epoch. */
  tick(nowMs: number): void;
}

/** Further away than this is looked at in between. */
const SLOTS = 600;

/**
 * One timer for all connections. Each sits in the slot of the second in which it is due: setting it costs no timer, and
 * what is due is spread over the seconds.
 */
export class TimerWheel {
  private readonly slots: (Set<Ticker> | undefined)[] = [];
  private readonly places = new Map<Ticker, number>();
  private readonly now: () => number;
  private timer: NodeJS.Timeout | undefined;
  private second: number;

  constructor(now: () => number = Date.now) {
    this.now = now;
    this.second = Math.floor(now() / 1_000);
  }

  start(): this {
    this.timer ??= setInterval(() => this.turn(), 1_000);
    this.timer.unref();
    return this;
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Due in some seconds, at least one; whatever was set before is void. */
  set(ticker: Ticker, seconds: number): void {
    this.remove(ticker);
    const slot = (this.second + Math.min(Math.max(1, Math.ceil(seconds)), SLOTS - 1)) % SLOTS;
    let due = this.slots[slot];
    if (!due) {
      due = new Set();
      this.slots[slot] = due;
    }
    due.add(ticker);
    this.places.set(ticker, slot);
  }

  remove(ticker: Ticker): void {
    const slot = this.places.get(ticker);
    if (slot === undefined) return;
    this.places.delete(ticker);
    this.slots[slot]?.delete(ticker);
  }

  /** Serves every second that has passed since the last turn. */
  turn(): void {
    const nowMs = this.now();
    const current = Math.floor(nowMs / 1_000);
    if (current - this.second > SLOTS) this.second = current - SLOTS; // the clock was set: each slot once is enough
    while (this.second < current) {
      this.second++;
      const slot = this.second % SLOTS;
      const due = this.slots[slot];
      this.slots[slot] = undefined;
      for (const ticker of due ?? []) {
        if (this.places.get(ticker) !== slot) continue;
        this.places.delete(ticker);
        ticker.tick(nowMs);
      }
    }
  }
}
