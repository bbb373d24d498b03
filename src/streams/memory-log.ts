import { randomInt } from 'node:crypto';
import { matchesPattern } from './channel-name.ts';
import { fingerprint, idempotencyName } from './fingerprint.ts';
import {
  type AppendOptions,
  type ChannelEvents,
  type Feed,
  type FeedListener,
  IDEMPOTENCY_MS,
  type LimitsOf,
  LogError,
  MAX_IDEMPOTENCY_KEYS,
  MAX_NAMES,
  type Mark,
  type NewEvent,
  type Page,
  type PartitionHealth,
  type StoredEvent,
  type StreamLog,
} from './log.ts';
import { partitionOf } from './partition-of.ts';
import { MAX_EPOCH, type Place, type Position } from './position.ts';
import { Tail } from './tail.ts';

export interface MemoryLogOptions {
  readonly limitsOf: LimitsOf;
  /** Several only to exercise what Redis Cluster needs. */
  readonly partitions?: number;
  readonly now?: () => number;
  readonly maxNames?: number;
  readonly maxIdempotencyKeys?: number;
}

/** The embedded store: the same rules as the Lua scripts, in this process. It ends with it, so its epoch is always new. */
export class MemoryLog implements StreamLog {
  readonly partitions: number;
  readonly limitsOf: LimitsOf;
  private readonly parts: MemoryPartition[];
  private readonly clock: () => number;

  constructor(options: MemoryLogOptions) {
    this.partitions = options.partitions ?? 1;
    this.limitsOf = options.limitsOf;
    this.clock = options.now ?? Date.now;
    this.parts = Array.from({ length: this.partitions }, () => new MemoryPartition(options, this.clock));
  }

  partitionOf(channel: string): number {
    return partitionOf(channel, this.partitions);
  }

  async append(events: readonly NewEvent[], options: AppendOptions = {}): Promise<readonly Place[]> {
    const { idempotency } = options;
    const name = idempotency && idempotencyName(idempotency.principal, idempotency.key);
    // One process: a key's home knows of all partitions, and nothing fails half way.
    const home = this.part(partitionOf(name ?? '', this.partitions));
    const body = name === undefined ? '' : fingerprint(events);
    if (idempotency && name !== undefined) {
      const seen = home.recall(idempotency.principal, name);
      if (seen && seen.fingerprint !== body) {
        throw new LogError('conflict', 'The idempotency key was used for other events.');
      }
      if (seen) return seen.places;
    }
    const places: Place[] = [];
    for (const [partition, part] of this.parts.entries()) {
      const mine = [...events.entries()].filter(([, event]) => this.partitionOf(event.channel) === partition);
      for (const [i, stored] of part.append(mine).entries()) {
        places[(mine[i] as [number, NewEvent])[0]] = { ms: stored.ms, seq: stored.seq, partition, epoch: part.epoch };
      }
    }
    if (idempotency && name !== undefined) home.remember(idempotency.principal, name, { fingerprint: body, places });
    return places;
  }

  async read(partition: number, channels: readonly string[], after: Position, page: number): Promise<Page> {
    return this.part(partition).page(channels, after.seq, (kept) => kept.after(after.seq, page), page);
  }

  async tails(partition: number, channels: readonly string[], count: (channel: string) => number): Promise<Page> {
    return this.part(partition).page(channels, 0, (kept, channel) => kept.newest(count(channel)));
  }

  async index(partition: number): Promise<{ forgot: number; last: ReadonlyMap<string, number> }> {
    const part = this.part(partition);
    return { forgot: part.forgot, last: new Map(part.last) };
  }

  async names(pattern: string): Promise<string[]> {
    return this.parts.flatMap((part) => [...part.last.keys()].filter((name) => matchesPattern(pattern, name))).sort();
  }

  now(): number {
    return this.clock();
  }

  health(): readonly PartitionHealth[] {
    return this.parts.map(() => ({ up: true, markAgeMs: 0, lastError: undefined }));
  }

  subscribe(partition: number, listener: FeedListener): Feed {
    return new MemoryFeed(this.part(partition), listener);
  }

  async close(): Promise<void> {
    for (const part of this.parts) part.feeds.clear();
  }

  private part(partition: number): MemoryPartition {
    const part = this.parts[partition];
    if (!part) throw new RangeError(`no partition ${partition}`);
    return part;
  }
}

interface Remembered {
  readonly fingerprint: string;
  readonly places: readonly Place[];
}

class MemoryPartition {
  epoch = randomInt(MAX_EPOCH + 1);
  forgot = 0;
  /** In the order of their numbers: a name moves to the end with every event. */
  readonly last = new Map<string, number>();
  readonly feeds = new Set<MemoryFeed>();
  private head: Position = { ms: 0, seq: 0 };
  private readonly kept = new Map<string, Tail<StoredEvent>>();
  private readonly idempotent = new Map<string, Map<string, Remembered & { readonly until: number }>>();
  private readonly options: MemoryLogOptions;
  private readonly clock: () => number;
  private swept: number;

  constructor(options: MemoryLogOptions, clock: () => number) {
    this.options = options;
    this.clock = clock;
    this.swept = clock();
  }

  append(events: readonly (readonly [number, NewEvent])[]): StoredEvent[] {
    const now = this.clock();
    const ms = Math.max(now, this.head.ms);
    const stored: StoredEvent[] = [];
    for (const [, { channel, data }] of events) {
      const seq = this.head.seq + 1;
      const known = this.last.get(channel);
      const event: StoredEvent = {
        channel,
        ms,
        seq,
        prev: known ?? this.forgot,
        prevForgotten: known === undefined,
        data,
      };
      const limits = this.options.limitsOf(channel);
      const kept = this.kept.get(channel) ?? new Tail<StoredEvent>();
      this.kept.set(channel, kept);
      kept.push(event);
      while (kept.length > limits.events) kept.shift();
      this.last.delete(channel);
      this.last.set(channel, seq);
      this.head = { ms, seq };
      stored.push(event);
    }
    this.trim(stored, now);
    this.forget();
    for (const feed of this.feeds) feed.announce(this.epoch, stored);
    return stored;
  }

  page(
    channels: readonly string[],
    after: number,
    pick: (kept: Tail<StoredEvent>, channel: string) => StoredEvent[],
    full = Number.POSITIVE_INFINITY,
  ): Page {
    const now = this.clock();
    let horizon = this.head;
    const out = new Map<string, ChannelEvents>();
    for (const channel of channels) {
      const kept = this.kept.get(channel);
      if (kept) this.dropOld(kept, now - this.options.limitsOf(channel).ageMs);
      const events = kept ? pick(kept, channel).filter((event) => event.seq > after) : [];
      const end = events.at(-1);
      if (end && events.length >= full && end.seq < horizon.seq) horizon = { ms: end.ms, seq: end.seq };
      out.set(channel, { events, last: this.last.get(channel) ?? this.forgot });
    }
    return { epoch: this.epoch, channels: out, horizon };
  }

  mark(broken?: number): Mark {
    if (broken === this.epoch) this.epoch = (this.epoch + 1 + randomInt(MAX_EPOCH)) % (MAX_EPOCH + 1);
    return { epoch: this.epoch, head: this.head, time: this.clock() };
  }

  recall(principal: string, name: string): Remembered | undefined {
    const seen = this.idempotent.get(principal)?.get(name);
    return seen && seen.until > this.clock() ? seen : undefined;
  }

  remember(principal: string, name: string, what: Remembered): void {
    const now = this.clock();
    const keys = this.idempotent.get(principal) ?? new Map<string, Remembered & { until: number }>();
    keys.delete(name); // again at the end: the map is in the order of time
    keys.set(name, { ...what, until: now + IDEMPOTENCY_MS });
    this.idempotent.set(principal, keys);
    const most = this.options.maxIdempotencyKeys ?? MAX_IDEMPOTENCY_KEYS;
    for (const [old, { until }] of keys) {
      if (keys.size <= most && until > now) break;
      keys.delete(old);
    }
  }

  private dropOld(kept: Tail<StoredEvent>, oldest: number): void {
    while (kept.first && kept.first.ms < oldest) kept.shift();
  }

  private trim(stored: readonly StoredEvent[], now: number): void {
    for (const channel of new Set(stored.map((event) => event.channel))) {
      const kept = this.kept.get(channel);
      if (kept) this.dropOld(kept, now - this.options.limitsOf(channel).ageMs);
    }
    // Redis expires whole streams by itself; here channels that went quiet are emptied now and then.
    if (now - this.swept < 60_000) return;
    this.swept = now;
    for (const [channel, kept] of this.kept) {
      this.dropOld(kept, now - this.options.limitsOf(channel).ageMs);
      if (kept.length === 0) this.kept.delete(channel);
    }
    for (const [principal, keys] of this.idempotent) {
      for (const [name, { until }] of keys) if (until <= now) keys.delete(name);
      if (keys.size === 0) this.idempotent.delete(principal);
    }
  }

  private forget(): void {
    const most = this.options.maxNames ?? MAX_NAMES;
    for (const [name, seq] of this.last) {
      if (this.last.size <= most) break;
      this.last.delete(name);
      this.kept.delete(name);
      this.forgot = seq;
    }
  }
}

class MemoryFeed implements Feed {
  private readonly part: MemoryPartition;
  private readonly listener: FeedListener;
  private readonly followed = new Set<string>();
  private all = false;
  private open = true;

  constructor(part: MemoryPartition, listener: FeedListener) {
    this.part = part;
    this.listener = listener;
    part.feeds.add(this);
    this.later(() => listener.opened());
  }

  /** Never inside the publisher's own call: a follower that publishes must not find the hub half way through a delivery. */
  private later(tell: () => void): void {
    queueMicrotask(() => {
      if (this.open) tell();
    });
  }

  announce(epoch: number, events: readonly StoredEvent[]): void {
    const wanted = events.filter((event) => this.all || this.followed.has(event.channel));
    if (wanted.length > 0) {
      this.later(() => {
        for (const event of wanted) this.listener.event(epoch, event);
      });
    }
  }

  async follow(channels: readonly string[]): Promise<void> {
    for (const channel of channels) this.followed.add(channel);
  }

  unfollow(channels: readonly string[]): void {
    for (const channel of channels) this.followed.delete(channel);
  }

  async followAll(): Promise<void> {
    this.all = true;
  }

  unfollowAll(): void {
    this.all = false;
  }

  async mark(broken?: number): Promise<Mark> {
    if (!this.open) throw new LogError('unavailable', 'The feed is closed.');
    const mark = this.part.mark(broken);
    return new Promise((resolve) => {
      this.later(() => {
        this.listener.marked(mark);
        resolve(mark);
      });
    });
  }

  close(): void {
    this.open = false;
    this.part.feeds.delete(this);
  }
}
