/** Remembers that something has happened to a ticket. It may forget, and it may be away: see `Tickets`. */
export interface FirstUse {
  mark(id: string, untilMs: number): Promise<void>;
  seen(id: string): Promise<boolean>;
}

export interface MemoryFirstUseOptions {
  /** The oldest marks make room. Default 100000. */
  readonly maxMarks?: number;
  readonly now?: () => number;
}

/** For one process. */
export class MemoryFirstUse implements FirstUse {
  /** In the order in which they came, so that a ticket's earlier mark is never forgotten after its later one. */
  private readonly marks = new Map<string, number>();
  private readonly maxMarks: number;
  private readonly now: () => number;

  constructor({ maxMarks = 100_000, now = Date.now }: MemoryFirstUseOptions = {}) {
    this.maxMarks = maxMarks;
    this.now = now;
  }

  get size(): number {
    return this.marks.size;
  }

  async mark(id: string, untilMs: number): Promise<void> {
    this.marks.set(id, untilMs);
    for (const [oldest, until] of this.marks) {
      if (this.marks.size <= this.maxMarks && until > this.now()) break;
      this.marks.delete(oldest);
    }
  }

  async seen(id: string): Promise<boolean> {
    return (this.marks.get(id) ?? Number.NEGATIVE_INFINITY) > this.now();
  }
}
