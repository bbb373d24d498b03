import { LogError } from '../streams/log.ts';
import type { Command, JobStore } from './store.ts';

export interface InboxOptions {
  readonly store: JobStore;
  readonly replica: string;
  /** False: not yet; it stays where it is. */
  readonly obey: (command: Command) => Promise<boolean>;
  readonly failed: (error: unknown) => void;
}

/** What other replicas want of this one. The bell is a hint: whoever misses it looks at the next mark. */
export class Inbox {
  private readonly options: InboxOptions;
  private looking = false;
  private again = false;
  private closed = false;

  constructor(options: InboxOptions) {
    this.options = options;
  }

  /** There may be something in it. */
  rang(): void {
    this.again = true;
    if (!this.looking) void this.look();
  }

  close(): void {
    this.closed = true;
  }

  private async look(): Promise<void> {
    const { store, replica, obey, failed } = this.options;
    this.looking = true;
    try {
      while (this.again && !this.closed) {
        this.again = false;
        const obeyed: Command[] = [];
        for (const command of await store.inbox(replica)) if (await obey(command)) obeyed.push(command);
        if (obeyed.length === 0) continue;
        await store.done(replica, obeyed);
        this.again = true; // there may be more than one page
      }
    } catch (error) {
      if (!(error instanceof LogError)) failed(error);
    } finally {
      this.looking = false; // in the same turn as the last look: a bell in between would not be heard
    }
  }
}
