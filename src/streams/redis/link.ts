import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ANSWER_MS } from './settings.ts';

export interface LinkHooks {
  /** Makes a connection that is not connected yet, to wherever the server is now. */
  make(): Promise<Redis>;
  /** The connection is up; the link counts as open when this resolves. */
  prepare?(redis: Redis): Promise<void>;
  opened?(redis: Redis): void;
  closed?(): void;
  failed?(error: unknown): void;
}

/** Rejects when a promise takes too long; the promise itself is left to its fate. */
export const within = async <T>(ms: number, promise: Promise<T>, what: string): Promise<T> => {
  // A bare timer: it stands behind every command, and aborting one that nobody needs any more costs an error each time.
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms} ms`)), ms).unref();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
};

const FIRST_DELAY_MS = 20;
const LONGEST_DELAY_MS = 2_000;

/** One connection, made again whenever it is lost. Never two at a time, and nothing survives from one to the next. */
export class Link {
  private readonly hooks: LinkHooks;
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;
  private current: Redis | undefined;
  private dropped: (() => void) | undefined;

  constructor(hooks: LinkHooks) {
    this.hooks = hooks;
    this.running = this.run();
  }

  /** The connection while it is open. */
  get redis(): Redis | undefined {
    return this.current?.status === 'ready' ? this.current : undefined;
  }

  /** Gives this connection up at once and makes another. */
  reset(): void {
    this.dropped?.();
  }

  async close(): Promise<void> {
    this.stopping.abort();
    this.dropped?.();
    await this.running;
  }

  private async run(): Promise<void> {
    for (let attempt = 0; !this.stopping.signal.aborted; attempt++) {
      if (await this.once()) attempt = 0;
      if (this.stopping.signal.aborted) return;
      const delay = Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS) * (0.5 + Math.random());
      await sleep(delay, undefined, { signal: this.stopping.signal, ref: false }).catch(() => {});
    }
  }

  /** The life of one connection; true if it was ever open. */
  private async once(): Promise<boolean> {
    let redis: Redis | undefined;
    let open = false;
    try {
      redis = await within(2 * ANSWER_MS, this.hooks.make(), 'Finding the Redis server');
      const connection = redis;
      connection.on('error', (error) => this.hooks.failed?.(error)); // without a listener ioredis prints it
      const end = new Promise<void>((resolve) => {
        const drop = (): void => {
          if (this.dropped !== drop) return; // the late close of a connection that was given up before
          this.dropped = undefined;
          this.current = undefined;
          // At once, not when the socket gets round to closing: what still comes in on it is nobody's.
          connection.removeAllListeners('smessage');
          if (open) this.hooks.closed?.();
          resolve();
        };
        this.dropped = drop;
        connection.once('close', drop);
        connection.once('moved', drop); // the cluster has given our slot to another node
      });
      if (this.stopping.signal.aborted) return false;
      await Promise.race([within(ANSWER_MS, connection.connect(), 'Connecting to Redis'), end]);
      await Promise.race([
        within(ANSWER_MS, this.hooks.prepare?.(connection) ?? Promise.resolve(), 'Greeting Redis'),
        end,
      ]);
      if (connection.status === 'ready' && this.dropped) {
        open = true;
        this.current = connection;
        this.hooks.opened?.(connection);
        await end;
      }
    } catch (error) {
      this.dropped?.();
      this.hooks.failed?.(error);
    } finally {
      if (redis && redis.status !== 'end') redis.disconnect();
    }
    return open;
  }
}
