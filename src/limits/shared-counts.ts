import { setImmediate as turn } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { within } from '../streams/redis/link.ts';

/**
 * The connection to Redis while it is ready. Limits make none of their own. With a cluster it must lead to the node that
 * serves the key prefix, which therefore holds a hash tag in braces.
 */
export type CurrentRedis = () => Redis | undefined;

/** A request does not wait longer than this for a count. */
const ANSWER_MS = 250;
/** After a missed answer nobody else waits for a while. */
const PAUSE_MS = 1_000;

export interface SharedCountsOptions {
  readonly redis: CurrentRedis;
  readonly now?: () => number;
  /** Redis did not answer, or not in time: for a second from now each replica counts for itself. */
  readonly failed?: (error: unknown) => void;
}

/** The way to the counts of all replicas. Whoever takes it has counts of its own for when it is closed. */
export class SharedCounts {
  private readonly redis: CurrentRedis;
  private readonly now: () => number;
  private readonly failed: (error: unknown) => void;
  private closedUntil = Number.NEGATIVE_INFINITY;

  constructor({ redis, now = () => performance.now(), failed = () => {} }: SharedCountsOptions) {
    this.redis = redis;
    this.now = now;
    this.failed = failed;
  }

  /**
   * The answer, or undefined if Redis is away, late or refuses: never throws. What was asked may still happen after a late
   * answer was given up, so only ask for what does no harm then.
   */
  async ask<T>(question: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    const redis = this.now() < this.closedUntil ? undefined : this.redis();
    if (!redis) return undefined;
    try {
      const answer = question(redis);
      return await within(ANSWER_MS, answer, 'Counting in Redis').catch(async (error: unknown) => {
        // This process may have been so busy that the answer waits in the socket: read it before giving it up.
        await turn();
        await turn();
        return Promise.race([answer, Promise.reject(error)]);
      });
    } catch (error) {
      // Of the many who asked at the same time one is enough to tell.
      if (this.now() >= this.closedUntil) this.failed(error);
      this.closedUntil = this.now() + PAUSE_MS;
      return undefined;
    }
  }
}
