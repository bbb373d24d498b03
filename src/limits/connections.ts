import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { principalName } from '../streams/fingerprint.ts';
import { withLimitScripts } from './scripts.ts';
import { type CurrentRedis, SharedCounts } from './shared-counts.ts';

export type ConnectionVerdict =
  | {
      readonly allowed: true /** To be called once when the connection has ended; more often does no harm. */;
      readonly release: () => void;
    }
  | {
      readonly allowed: false /** Whose limit is reached: the principal's over all replicas, or this replica's. */;
      readonly reason: 'principal' | 'total';
    };

export interface ConnectionsOptions {
  /** Of this replica; 0 = off. */
  readonly total: number;
  /** Over all replicas; 0 = off. */
  readonly perPrincipal: number;
  /** Absent: this process is the only one. */
  readonly redis?: CurrentRedis;
  /** What is counted, when it is not connections. */
  readonly name?: string;
  /** In front of every key. */
  readonly keyPrefix?: string;
  /** New at every start; tests may name it. */
  readonly replica?: string;
  /** How long the counts of a replica are believed after its last sign of life. */
  readonly leaseMs?: number;
  /** 0: only when `renew` is called. */
  readonly renewEveryMs?: number;
  readonly now?: () => number;
  /** Redis did not answer, or not in time: for a second from now each replica counts for itself. */
  readonly failed?: (error: unknown) => void;
}

interface Held {
  /** Open connections, and those that are being asked for. */
  count: number;
  asking: number;
  /** What Redis was last told; undefined when that is uncertain. */
  told: number | undefined;
  toldAt: number;
}

// A replica that dies leaves 10 to 12 s later, and five renewals in a row must fail before a living one is forgotten.
const LEASE_MS = 12_000;
const RENEW_MS = 2_000;
/** Counts of principals who never come back go with this; those of long connections are told again in time. */
const KEPT_MS = 3_600_000;
const TELL_AGAIN_MS = KEPT_MS / 3;
/** More at once, after Redis was away, would keep those waiting who come now. */
const TELL_AT_ONCE = 500;

/**
 * How many streams are open, or jobs are running. rate-limiter-flexible counts what expires by itself; it cannot tell which replica a count
 * belongs to, so those of a dead one would stay or those of long connections go. Hence one lease per replica and, per
 * principal, one total for each replica, which are believed while the lease lasts. Totals, not increments: whatever gets
 * lost or comes late is put right by the next one.
 */
export class Connections {
  private readonly options: ConnectionsOptions;
  private readonly prefix: string;
  private readonly replica: string;
  private readonly leaseMs: number;
  private readonly now: () => number;
  private readonly shared: SharedCounts | undefined;
  private readonly held = new Map<string, Held>();
  private readonly timer: NodeJS.Timeout | undefined;
  private open = 0;
  private leased = false;
  private renewing: Promise<void> | undefined;
  private lastConnection: Redis | undefined;

  constructor(options: ConnectionsOptions) {
    const {
      redis,
      keyPrefix = 'sluice:',
      name = 'connections',
      replica = randomUUID(),
      leaseMs = LEASE_MS,
      renewEveryMs = RENEW_MS,
    } = options;
    this.options = options;
    this.prefix = `${keyPrefix}${name}`;
    this.replica = replica;
    this.leaseMs = leaseMs;
    this.now = options.now ?? (() => performance.now());
    if (!redis || options.perPrincipal === 0) return;
    this.shared = new SharedCounts({ redis, now: this.now, ...(options.failed && { failed: options.failed }) });
    if (renewEveryMs > 0) this.timer = setInterval(() => void this.renew(), renewEveryMs).unref();
  }

  /** Open streams of this replica. */
  get size(): number {
    return this.open;
  }

  async acquire(principal: string): Promise<ConnectionVerdict> {
    const { total, perPrincipal } = this.options;
    if (total > 0 && this.open >= total) return { allowed: false, reason: 'total' };
    const name = principalName(principal);
    const held = this.held.get(name) ?? { count: 0, asking: 0, told: 0, toldAt: this.now() };
    // What this replica alone has is enough to refuse, whatever Redis would say.
    if (perPrincipal > 0 && held.count >= perPrincipal) return { allowed: false, reason: 'principal' };
    // Counted before anyone is asked, or all who come in this moment would see the same free place.
    this.held.set(name, held);
    held.count++;
    this.open++;
    if (this.shared && !(await this.admit(this.shared, name, held))) {
      this.drop(name, held);
      return { allowed: false, reason: 'principal' };
    }
    void this.settle(name, held);
    let released = false;
    return {
      allowed: true,
      release: () => {
        if (released) return;
        released = true;
        this.drop(name, held);
      },
    };
  }

  /** A sign of life, and everything that Redis does not know yet. One at a time. */
  renew(): Promise<void> {
    this.renewing ??= this.renewOnce().finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  /** The counts of this replica leave at once. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.renewing;
    await this.shared?.ask((redis) => withLimitScripts(redis).sluiceRenew(1, this.leases, this.replica, 0));
  }

  private get leases(): string {
    return `${this.prefix}:leases`;
  }

  private countsOf(name: string): string {
    return `${this.prefix}:${name}`;
  }

  /** Whether the other replicas leave room; yes while nobody can tell. */
  private async admit(shared: SharedCounts, name: string, held: Held): Promise<boolean> {
    const mine = held.count;
    held.asking++;
    const answer = await shared.ask((redis) => {
      // Counts without a lease are not believed; on the same connection the lease comes first.
      if (!this.leased) void this.renew();
      const { perPrincipal } = this.options;
      const counts = this.countsOf(name);
      return withLimitScripts(redis).sluiceAcquire(2, this.leases, counts, this.replica, mine, perPrincipal, KEPT_MS);
    });
    held.asking--;
    if (answer === 1) this.noteTold(held, mine);
    if (answer === undefined) held.told = undefined;
    return answer !== 0;
  }

  private drop(name: string, held: Held): void {
    this.open--;
    held.count--;
    void this.settle(name, held);
  }

  /** Tells Redis the total if it may know another one. Those who still ask carry totals with them; the last one settles. */
  private async settle(name: string, held: Held): Promise<void> {
    if (held.asking > 0) return;
    const mine = held.count;
    const stale = mine > 0 && this.now() - held.toldAt > TELL_AGAIN_MS;
    if (this.shared && (held.told !== mine || stale)) {
      this.noteTold(held, mine);
      const answer = await this.shared.ask(async (redis) => {
        await withLimitScripts(redis).sluiceHold(1, this.countsOf(name), this.replica, mine, KEPT_MS);
        return true;
      });
      if (answer === undefined) held.told = undefined;
    }
    const idle = held.count === 0 && held.asking === 0 && (held.told === 0 || !this.shared);
    if (idle && this.held.get(name) === held) this.held.delete(name);
  }

  private noteTold(held: Held, count: number): void {
    held.told = count;
    held.toldAt = this.now();
  }

  private async renewOnce(): Promise<void> {
    let connection: Redis | undefined;
    const answer = await this.shared?.ask((redis) => {
      connection = redis;
      return withLimitScripts(redis).sluiceRenew(1, this.leases, this.replica, this.leaseMs);
    });
    this.leased = answer !== undefined;
    if (!this.leased) return;
    // Without a lease the others forget what they were told; behind a new connection is perhaps a server that never knew.
    const doubtful = answer === 0 || connection !== this.lastConnection;
    if (doubtful) for (const held of this.held.values()) held.told = undefined;
    this.lastConnection = connection;
    let batch: Promise<void>[] = [];
    for (const [name, held] of this.held) {
      batch.push(this.settle(name, held));
      if (batch.length < TELL_AT_ONCE) continue;
      await Promise.all(batch);
      batch = [];
    }
    await Promise.all(batch);
  }
}
