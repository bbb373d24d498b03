import { Attachment, type HubOptions } from './attachment.ts';
import type { Encoder, Entry } from './entry.ts';
import { Follower, type Surroundings } from './follower.ts';
import type { Group } from './group.ts';
import { Interest, type Wanted } from './interest.ts';
import type { StreamLog } from './log.ts';
import type { Mirror } from './mirror.ts';
import type { Place } from './position.ts';
import { PageReader } from './reader.ts';
import { RESYNC_REASONS, type ResyncReason, type Sink } from './sink.ts';

export interface FollowRequest extends Wanted {
  /** The id that was received last; without one only what comes from now on is delivered. */
  readonly cursor?: string;
  readonly encoder: Encoder;
  readonly sink: Sink;
}

export interface Following {
  /** The sink takes events again. */
  resume(): void;
  /**
   * What an id would carry behind its prefix; undefined while it catches up. Everything before it has been given to the
   * sink when this returns.
   */
  position(): string | undefined;
  close(): void;
}

export interface HubStats {
  readonly followers: number;
  readonly live: number;
  /** Deliveries: events times followers, by where they came from. */
  readonly delivered: Readonly<Record<'live' | 'mirror' | 'log', number>>;
  readonly resyncs: Readonly<Record<ResyncReason, number>>;
  readonly gaps: number;
  /** From the store's acceptance to the delivery here, of some live events: their sum in ms, and how many. */
  readonly latency: { readonly sumMs: number; readonly samples: number };
}

const SWEEP_EVERY_MS = 1_000;

/**
 * Fan-out: followers with the same wish and the same encoder form a group, which gets everything that arrived in one turn
 * of the event loop as one batch, built once. Followers that are behind catch up by themselves and join then.
 */
export class Hub {
  private readonly log: StreamLog;
  private readonly attachments: readonly Attachment[];
  private readonly interests = new Map<string, Interest>();
  /** Groups with something to deliver in this turn. */
  private readonly waiting = new Set<Group>();
  private readonly behind = new Set<Follower>();
  private readonly around: Surroundings;
  private readonly sweeper: NodeJS.Timeout;
  private followers = 0;
  private turnComes = false;
  private readonly counts = {
    delivered: { live: 0, mirror: 0, log: 0 },
    resyncs: Object.fromEntries(RESYNC_REASONS.map((reason) => [reason, 0])) as Record<ResyncReason, number>,
    gaps: 0,
    latency: { sumMs: 0, samples: 0 },
  };

  constructor(log: StreamLog, options: HubOptions = {}) {
    this.log = log;
    const hooks = {
      changed: () => this.scheduleTurn(),
      settle: (partition: number) => this.settle((interest) => interest.lanes.includes(partition)),
      arrived: (partition: number, mirror: Mirror, entry: Entry) => this.arrived(partition, mirror, entry),
      gap: (partition: number, mirror: Mirror) => this.gap(partition, mirror),
    };
    this.attachments = Array.from({ length: log.partitions }, (_, i) => new Attachment(log, i, hooks, options));
    this.around = {
      attachments: this.attachments,
      reader: new PageReader(log, options.pageEvents),
      now: (partition) => log.now(partition),
      heads: () => this.heads(),
      again: (follower, afterMs) => this.again(follower, afterMs),
      join: (follower) => this.join(follower),
      resynced: (reason) => {
        this.counts.resyncs[reason]++;
      },
      delivered: (events, from) => {
        this.counts.delivered[from] += events;
      },
    };
    this.sweeper = setInterval(() => this.sweep(), SWEEP_EVERY_MS);
    this.sweeper.unref();
  }

  follow(request: FollowRequest): Following {
    const interest = this.interestIn(request);
    const follower = new Follower(interest, request.encoder, request.sink, request.cursor, this.around);
    this.followers++;
    interest.followers++;
    for (const lane of interest.lanes) this.attachments[lane]?.want(interest);
    this.again(follower);
    let closed = false;
    return {
      resume: () => follower.resume(),
      position: () => {
        this.flushAll(); // what waits for the end of this turn lies before the position
        return follower.position;
      },
      close: () => {
        if (closed) return;
        closed = true;
        this.unfollow(follower);
      },
    };
  }

  /** Lets go of channels that nobody has followed for a while. */
  sweep(now = performance.now()): void {
    for (const attachment of this.attachments) attachment.sweep(now);
  }

  /** Every partition has been level with the store at least once. */
  get loaded(): boolean {
    return this.attachments.every((attachment) => attachment.loaded);
  }

  /** Followers of each channel that somebody follows by its name, here. */
  presence(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const interest of this.interests.values()) {
      for (const name of interest.allNames()) counts.set(name, (counts.get(name) ?? 0) + interest.followers);
    }
    return counts;
  }

  /** How many follow a channel here, by its name or by a pattern. */
  followersOf(channel: string): number {
    let followers = 0;
    for (const interest of this.interests.values()) {
      if (interest.hasName(channel) || interest.finds(channel)) followers += interest.followers;
    }
    return followers;
  }

  stats(): HubStats {
    const { delivered, resyncs, gaps, latency } = this.counts;
    const followers = this.followers;
    return {
      followers,
      live: followers - this.behind.size,
      delivered: { ...delivered },
      resyncs: { ...resyncs },
      gaps,
      latency: { ...latency },
    };
  }

  close(): void {
    clearInterval(this.sweeper);
    for (const attachment of this.attachments) attachment.stop();
    this.behind.clear();
    this.interests.clear();
  }

  private interestIn(wanted: Wanted): Interest {
    const key = Interest.keyOf(wanted);
    let interest = this.interests.get(key);
    if (!interest) {
      interest = new Interest(wanted, this.log.partitions, (channel) => this.log.partitionOf(channel));
      this.interests.set(key, interest);
    }
    return interest;
  }

  private unfollow(follower: Follower): void {
    const { interest, encoder } = follower;
    follower.close();
    this.followers--;
    this.behind.delete(follower);
    const group = interest.groups.get(encoder);
    group?.members.delete(follower);
    if (group && group.members.size === 0) interest.groups.delete(encoder);
    const last = --interest.followers === 0;
    if (last) this.interests.delete(interest.key);
    for (const lane of interest.lanes) this.attachments[lane]?.unwant(interest, last, performance.now());
  }

  private heads(): Place[] {
    return this.attachments.map((attachment) => attachment.place);
  }

  private again(follower: Follower, afterMs?: number): void {
    if (afterMs !== undefined) {
      setTimeout(() => this.scheduleTurn(), afterMs).unref();
      return;
    }
    this.behind.add(follower);
    this.scheduleTurn();
  }

  /** Everything that arrives until the loop has read all its sockets belongs to one turn. */
  private scheduleTurn(): void {
    if (this.turnComes) return;
    this.turnComes = true;
    setImmediate(() => {
      this.turnComes = false;
      this.flushAll();
      for (const follower of this.behind) follower.pump();
    });
  }

  private flushAll(): void {
    if (this.waiting.size === 0) return;
    const heads = this.heads();
    for (const group of this.waiting) this.counts.delivered.live += group.flush(heads);
    this.waiting.clear();
  }

  private arrived(partition: number, mirror: Mirror, entry: Entry): void {
    // One in each turn is enough to know, and costs nothing.
    if (this.waiting.size === 0) {
      this.counts.latency.sumMs += Math.max(0, this.log.now(partition) - entry.ms);
      this.counts.latency.samples++;
    }
    for (const interest of mirror.interests) {
      for (const group of interest.groups.values()) {
        group.add({ partition, entry });
        this.waiting.add(group);
      }
    }
  }

  /** Only in a turn, after everything was flushed: what waits in a group is what none of its members has. */
  private join(follower: Follower): void {
    follower.interest.group(follower.encoder).join(follower, this.heads());
    this.behind.delete(follower);
  }

  /** Delivers what has arrived and makes everybody behind whose interest is concerned. */
  private settle(concerned: (interest: Interest) => boolean): void {
    this.flushAll();
    for (const interest of this.interests.values()) {
      if (!concerned(interest)) continue;
      for (const group of interest.groups.values()) {
        for (const member of group.members) (member as Follower).leave();
        group.members.clear();
      }
      interest.groups.clear();
    }
  }

  private gap(partition: number, mirror: Mirror): void {
    this.counts.gaps++;
    this.settle((interest) => mirror.interests.has(interest));
    for (const follower of this.behind) {
      if (mirror.interests.has(follower.interest)) follower.missGap(partition, mirror.channel, mirror.last);
    }
  }
}
