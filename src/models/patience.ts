/**
 * A wait that ends by itself. When the process was busy for long, a timer is due before what has arrived meanwhile is
 * read; so all that is there is read first, and who has spoken in time is not called silent.
 */
export class Patience {
  private readonly timer: NodeJS.Timeout;
  private last: NodeJS.Immediate | undefined;

  constructor(ms: number, over: () => void) {
    this.timer = setTimeout(() => {
      this.last = setImmediate(over);
    }, ms);
  }

  /** From now on as long again. */
  renew(): void {
    if (this.last) clearImmediate(this.last);
    this.last = undefined;
    this.timer.refresh();
  }

  end(): void {
    clearTimeout(this.timer);
    if (this.last) clearImmediate(this.last);
  }
}
