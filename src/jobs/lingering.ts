import { Fifo } from './fifo.ts';

/** Ids that are let go of some time after they were put here. One timer for all of them, since all stay equally long. */
export class Lingering {
  private readonly ms: number;
  private readonly letGo: (id: string) => void;
  /** When each leaves. */
  private readonly due = new Map<string, number>();
  /** In the order of time; what is not due at its time any more was kept, or put here again. */
  private readonly order = new Fifo<{ readonly id: string; readonly at: number }>();
  private timer: NodeJS.Timeout | undefined;

  constructor(ms: number, letGo: (id: string) => void) {
    this.ms = ms;
    this.letGo = letGo;
  }

  /** Its time begins, or begins anew. */
  put(id: string): void {
    const at = performance.now() + this.ms;
    this.due.set(id, at);
    this.order.push({ id, at });
    this.timer ??= setTimeout(() => this.turn(), this.ms).unref();
  }

  /** It stays. */
  keep(id: string): void {
    this.due.delete(id);
  }

  close(): void {
    clearTimeout(this.timer);
    this.due.clear();
  }

  private turn(): void {
    this.timer = undefined;
    const now = performance.now();
    for (let first = this.order.peek(); first; first = this.order.peek()) {
      const { id, at } = first;
      if (at > now) {
        this.timer = setTimeout(() => this.turn(), at - now).unref();
        return;
      }
      this.order.shift();
      if (this.due.get(id) !== at) continue;
      this.due.delete(id);
      this.letGo(id);
    }
  }
}
