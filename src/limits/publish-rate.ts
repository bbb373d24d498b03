import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { principalName } from '../streams/fingerprint.ts';
import { limiterStore } from './limiter-store.ts';
import { type CurrentRedis, SharedCounts } from './shared-counts.ts';

export type PublishVerdict =
  | { readonly allowed: true }
  | { readonly allowed: false /** At least 1. */; readonly retryAfterSeconds: number };

export interface PublishRateOptions {
  /** Events per second and principal; 0 = off. */
  readonly perSecond: number;
  /** Absent: this process is the only one. */
  readonly redis?: CurrentRedis;
  /** In front of every key. */
  readonly keyPrefix?: string;
  /** Redis did not answer, or not in time: for a second from now each replica counts for itself. */
  readonly failed?: (error: unknown) => void;
}

/**
 * Events per second of a principal, over all replicas; while Redis is away each replica counts for itself.
 *
 * The window is a second that begins with its first event. What is refused counts in its window too, so whoever insists
 * gains nothing, and is free again when the window ends. A batch of more events than a second allows could never fit: it is
 * let through when it is the first of its window, and that window is then as many seconds long as the batch is worth, so
 * that the rate holds over time. In a window that others have begun it is refused and may try again when that ends.
 */
export class PublishRate {
  private readonly perSecond: number;
  private readonly limiter: RateLimiterMemory | RateLimiterRedis | undefined;

  constructor({ perSecond, redis, keyPrefix = 'sluice:', failed }: PublishRateOptions) {
    this.perSecond = perSecond;
    if (perSecond === 0) return;
    const counting = { points: perSecond, duration: 1, keyPrefix: `${keyPrefix}publish` };
    const local = new RateLimiterMemory(counting);
    if (!redis) {
      this.limiter = local;
      return;
    }
    const counts = new SharedCounts({ redis, ...(failed && { failed }) });
    this.limiter = new RateLimiterRedis({ ...counting, storeClient: limiterStore(counts), insuranceLimiter: local });
  }

  async take(principal: string, events: number): Promise<PublishVerdict> {
    if (!this.limiter || events <= 0) return { allowed: true };
    const seconds = Math.ceil(events / this.perSecond);
    try {
      await this.limiter.consume(principalName(principal), events, { customDuration: seconds });
      return { allowed: true };
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      if (events > this.perSecond && refusal.isFirstInDuration) return { allowed: true };
      return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(refusal.msBeforeNext / 1000)) };
    }
  }
}
