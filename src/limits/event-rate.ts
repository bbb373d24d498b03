const BURST_MS = 1_000;

/**
 * Events per second of one connection, with a second's worth in hand. Nothing is ever refused: what has been sent may
 * exceed that once, and the connection is then behind until the excess is paid.
 */
export class EventRate {
  /** What one event takes; 0 = off. */
  private readonly msPerEvent: number;
  private readonly now: () => number;
  /** When everything that was sent is paid. */
  private paidAt: number;

  /** 0 = off. The clock is in ms and never runs backwards. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.msPerEvent = perSecond === 0 ? 0 : 1_000 / perSecond;
    this.now = now;
    this.paidAt = now();
  }

  /** How many may be sent at once; at least 1. */
  room(): number {
    if (this.msPerEvent === 0) return Number.POSITIVE_INFINITY;
    const ahead = Math.max(0, this.paidAt - this.now());
    return Math.max(1, Math.floor((BURST_MS - ahead) / this.msPerEvent));
  }

  /** After n events were sent: the ms to wait before more may be; 0 = go on. */
  take(n: number): number {
    const now = this.now();
    this.paidAt = Math.max(this.paidAt, now) + n * this.msPerEvent;
    return Math.max(0, Math.ceil(this.paidAt - now - BURST_MS));
  }
}
