import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { limiterStore } from './limiter-store.ts';
import { type CurrentRedis, SharedCounts } from './shared-counts.ts';

export type AgentRateVerdict =
  | { readonly allowed: true }
  | { readonly allowed: false /** At least 1. */; readonly retryAfterSeconds: number };

export interface AgentRateOptions {
  /** Absent: this process is the only one. */
  readonly redis?: CurrentRedis;
  /** In front of every key. */
  readonly keyPrefix?: string;
  readonly failed?: (error: unknown) => void;
}

type Limiter = RateLimiterMemory | RateLimiterRedis;

/** Requests of an agent, over all replicas: so many in a minute, and of these so many in a second. */
export class AgentRate {
  private readonly options: AgentRateOptions;
  private readonly counts: SharedCounts | undefined;
  /** By what they allow: manifests change, and with them the limits. */
  private readonly limiters = new Map<string, Limiter>();

  constructor(options: AgentRateOptions = {}) {
    const { redis, failed } = options;
    this.options = options;
    this.counts = redis && new SharedCounts({ redis, ...(failed && { failed }) });
  }

  async take(agent: string, perMinute: number, burst: number | undefined): Promise<AgentRateVerdict> {
    // The shorter first: what it refuses is not counted in the minute.
    const limits = [
      ...(burst === undefined ? [] : [{ points: burst, duration: 1 }]),
      { points: perMinute, duration: 60 },
    ];
    for (const { points, duration } of limits) {
      try {
        await this.limiter(points, duration).consume(agent, 1);
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
        return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil(refusal.msBeforeNext / 1_000)) };
      }
    }
    return { allowed: true };
  }

  private limiter(points: number, duration: number): Limiter {
    const key = `${points}/${duration}`;
    let limiter = this.limiters.get(key);
    if (!limiter) {
      const { keyPrefix = 'sluice:' } = this.options;
      const counting = { points, duration, keyPrefix: `${keyPrefix}agent:${duration}` };
      const local = new RateLimiterMemory(counting);
      limiter = this.counts
        ? new RateLimiterRedis({ ...counting, storeClient: limiterStore(this.counts), insuranceLimiter: local })
        : local;
      this.limiters.set(key, limiter);
    }
    return limiter;
  }
}
