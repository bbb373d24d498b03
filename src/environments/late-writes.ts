import { setMaxListeners } from 'node:events';
import { LogError } from '../streams/log.ts';
import { pause } from './pause.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** What others must come to know, as soon as the store takes it. */
export class LateWrites {
  private readonly closing = new AbortController();

  constructor() {
    setMaxListeners(0, this.closing.signal); // everything that could not be written waits with it
  }

  /** Resolves when it is written, or the store is away and it will be tried again. */
  async write(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      void this.writeLater(write);
    }
  }

  /** What is not written yet will not be. */
  close(): void {
    this.closing.abort();
  }

  private async writeLater(write: () => Promise<void>): Promise<void> {
    const { signal } = this.closing;
    for (let wait = FIRST_PAUSE_MS; !signal.aborted; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      try {
        await pause(wait, signal);
        return await write();
      } catch (error) {
        if (!signal.aborted && !(error instanceof LogError)) throw error;
      }
    }
  }
}
