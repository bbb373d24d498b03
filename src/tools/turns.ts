import { ToolError } from './tool.ts';

/** So many may wait for a turn; more would only grow old in line. */
const MAX_WAITING = 1_000;

/** At most so many at the same time; the others wait in line. */
export class Turns {
  private readonly most: number;
  private readonly waiting: (() => void)[] = [];
  private running = 0;

  /** 0: any number. */
  constructor(most: number) {
    this.most = most;
  }

  /** Resolves to what ends the turn. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.most > 0 && this.running >= this.most) {
      if (this.waiting.length >= MAX_WAITING) throw new ToolError('busy', 'Too many calls of this tool are waiting.');
      await new Promise<void>((resolve, reject) => {
        const turn = (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        };
        const leave = (): void => {
          this.waiting.splice(this.waiting.indexOf(turn), 1);
          reject(signal.reason as Error);
        };
        this.waiting.push(turn);
        signal.addEventListener('abort', leave, { once: true });
      });
    } else {
      this.running++;
    }
    let over = false;
    return () => {
      if (over) return;
      over = true;
      const next = this.waiting.shift();
      // The place is handed over, so that nobody who comes in this moment can take it.
      if (next) next();
      else this.running--;
    };
  }
}
