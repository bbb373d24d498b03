import { setTimeout as sleep } from 'node:timers/promises';
import type { Entry } from './entry.ts';
import type { Interest } from './interest.ts';
import type { ChannelLimits, Feed, FeedListener, Mark, Page, StoredEvent, StreamLog } from './log.ts';
import { Mirror } from './mirror.ts';
import { ORIGIN, type Place, type Position } from './position.ts';
import { Wildcard } from './wildcard.ts';

/** How much of a channel is loaded when it is attached; more gathers while it is live. */
const LOAD_EVENTS = 500;
/** A channel that nobody follows any more stays mirrored for followers that come back. */
const LINGER_MS = 10_000;
const RETRY_MS = 50;

export interface HubOptions {
  /** A mirror holds no more events than this, whatever the channel keeps. */
  readonly mirrorEvents?: number;
  /** Events of one page read from the log, about, over all its channels. */
  readonly pageEvents?: number;
}

export interface AttachmentHooks {
  /** There may be something to deliver at the end of this turn. */
  changed(): void;
  /** What has arrived must be delivered now; after that nobody is live in this partition. */
  settle(partition: number): void;
  /** A live event, for the live followers of the mirror's interests. */
  arrived(partition: number, mirror: Mirror, entry: Entry): void;
  /** Something after the mirror's last event is missing on a live feed. */
  gap(partition: number, mirror: Mirror): void;
}

/** A channel with something after a position; in the mirror, if that reaches back far enough. */
export interface Source {
  readonly channel: string;
  readonly last: number;
  readonly mirror: Mirror | undefined;
}

/**
 * This replica's hold on one partition: the mirrors of its channels, and how they are loaded without a hole between the
 * past, which is read from the store, and the present, which comes by the feed.
 *
 * Attaching: follow and wait for the confirmation, set live events aside, load, mark. When the mark has come back on the
 * feed, everything before it has come too, so loaded and set-aside events together are complete.
 *
 * The epoch and falling numbers are judged on the feed alone: only there is the order of things known.
 */
export class Attachment implements FeedListener {
  readonly partition: number;
  readonly feed: Feed;
  epoch: number | undefined;
  /** Everything of the followed channels up to here has been received. */
  head: Position = ORIGIN;
  /** Grows whenever what was known about the partition is void. */
  generation = 0;
  private readonly log: StreamLog;
  private readonly hooks: AttachmentHooks;
  private readonly mirrorEvents: number;
  private readonly mirrors = new Map<string, Mirror>();
  private readonly unready = new Set<Mirror>();
  private readonly wildcard = new Wildcard();
  /** An epoch whose numbers fell: nothing of it is believed until the store has started another. */
  private broken: number | undefined;
  private open = false;
  private caughtUp = false;
  private everCaughtUp = false;
  private attaching = false;
  private dropWildcard = false;

  constructor(log: StreamLog, partition: number, hooks: AttachmentHooks, options: HubOptions = {}) {
    this.log = log;
    this.mirrorEvents = options.mirrorEvents ?? Number.POSITIVE_INFINITY;
    this.partition = partition;
    this.hooks = hooks;
    this.feed = log.subscribe(partition, this);
  }

  get place(): Place {
    return { ...this.head, partition: this.partition, epoch: this.epoch ?? 0 };
  }

  /** It has been level with the store at least once. */
  get loaded(): boolean {
    return this.everCaughtUp;
  }

  stop(): void {
    this.open = false;
    this.feed.close();
  }

  // What followers want

  want(interest: Interest): void {
    for (const name of interest.namesIn(this.partition)) {
      const mirror = this.mirrors.get(name) ?? this.makeMirror(name);
      mirror.followers++;
      mirror.idleSince = undefined;
      mirror.interests.add(interest);
    }
    if (interest.patterns.length > 0) {
      this.wildcard.want(interest);
      this.dropWildcard = false;
      for (const mirror of this.mirrors.values()) if (interest.finds(mirror.channel)) mirror.interests.add(interest);
    }
    this.attach();
  }

  /** `last`: nobody else shares the interest. */
  unwant(interest: Interest, last: boolean, now: number): void {
    for (const name of interest.namesIn(this.partition)) {
      const mirror = this.mirrors.get(name);
      if (mirror && --mirror.followers === 0) mirror.idleSince = now;
    }
    if (interest.patterns.length > 0) this.wildcard.unwant(interest, last, now);
    if (last) for (const mirror of this.mirrors.values()) mirror.interests.delete(interest);
  }

  /** Lets go of what nobody has followed for a while. `now` as in `unwant`. */
  sweep(now: number): void {
    const over = (since: number | undefined): boolean => since !== undefined && now - since >= LINGER_MS;
    if (this.wildcard.state !== 'off' && over(this.wildcard.idleSince)) {
      this.dropWildcard = true;
      this.attach();
    }
    const gone: string[] = [];
    const oldest = this.log.now(this.partition) - LINGER_MS;
    for (const mirror of this.mirrors.values()) {
      // One that only patterns reach can be made again from the list of last numbers at its next event.
      const idle = mirror.onlyByPattern ? mirror.ready && mirror.newestMs < oldest : over(mirror.idleSince);
      if (!idle) continue;
      this.forgetMirror(mirror);
      if (mirror.followed) gone.push(mirror.channel);
    }
    if (gone.length > 0 && this.open) this.feed.unfollow(gone);
  }

  // What followers may have

  /** Everything of this interest that has been received can be delivered. */
  serves(interest: Interest): boolean {
    if (!this.caughtUp) return false;
    if (interest.patterns.length > 0 && this.wildcard.state !== 'live') return false;
    return interest.namesIn(this.partition).every((name) => this.mirrors.get(name)?.ready);
  }

  /** The channels of an interest that have something after a number. */
  sources(interest: Interest, after: number): Source[] {
    const sources: Source[] = [];
    for (const channel of interest.namesIn(this.partition)) {
      const mirror = this.mirrors.get(channel);
      if (mirror && mirror.last > after) sources.push({ channel, last: mirror.last, mirror });
    }
    for (const channel of this.wildcard.found(interest)) {
      const last = this.wildcard.lastOf(channel);
      if (last > after && !interest.hasName(channel))
        sources.push({ channel, last, mirror: this.mirrors.get(channel) });
    }
    return sources;
  }

  // The feed

  opened(): void {
    this.open = true;
    this.attach();
  }

  closed(): void {
    this.open = false;
    this.lose(false);
  }

  event(epoch: number, event: StoredEvent): void {
    if (!this.believe(epoch, event)) return;
    const { channel } = event;
    let mirror = this.mirrors.get(channel);
    if (this.wildcard.state !== 'off') {
      if (!mirror && this.wildcard.state === 'live' && this.wildcard.finders(channel).length > 0) {
        mirror = this.makeMirror(channel);
      }
      this.wildcard.saw(channel, event.seq);
    }
    // Followers that leave because of a gap stand where the partition does: this event must not count as theirs yet.
    if (mirror?.ready && event.seq > mirror.last && mirror.gapBefore(event)) this.hooks.gap(this.partition, mirror);
    this.head = { ms: event.ms, seq: event.seq };
    if (mirror && !mirror.ready) mirror.aside.push(event);
    const entry = mirror?.ready ? mirror.take(event, this.partition, epoch) : undefined;
    if (!entry) return;
    this.hooks.arrived(this.partition, mirror as Mirror, entry);
    this.hooks.changed();
  }

  marked({ epoch, head }: Mark): void {
    if (!this.believe(epoch, head)) return;
    this.head = head;
    this.hooks.changed();
  }

  /** Whether what the feed says can be taken as it is; if not, or if it tells of a new epoch, everything starts over. */
  private believe(epoch: number, at: Position): boolean {
    if (epoch !== this.epoch) {
      if (this.epoch !== undefined) this.lose(true);
      this.epoch = epoch;
      this.broken = undefined;
      this.attach();
      return true;
    }
    if (this.broken === epoch) return false;
    if (at.seq >= this.head.seq) return true;
    this.lose(true);
    this.broken = epoch;
    this.attach();
    return false;
  }

  /** Nothing is ready any more. `state`: the store's state is lost, not just the connection to it. */
  private lose(state: boolean): void {
    this.hooks.settle(this.partition);
    this.generation++;
    this.caughtUp = false;
    this.wildcard.reset(state);
    for (const mirror of this.mirrors.values()) {
      if (mirror.onlyByPattern) {
        this.forgetMirror(mirror);
        continue;
      }
      mirror.ready = false;
      mirror.aside = [];
      if (state) mirror.restart(0);
      else mirror.followed = false;
      this.unready.add(mirror);
    }
  }

  // Attaching

  private makeMirror(channel: string): Mirror {
    const mirror = new Mirror(channel, this.limitsOf(channel));
    this.mirrors.set(channel, mirror);
    for (const interest of this.wildcard.finders(channel)) mirror.interests.add(interest);
    if (this.wildcard.state === 'live') {
      this.rest(mirror); // all events of the partition arrive already, so there is nothing to wait for
    } else {
      this.unready.add(mirror);
    }
    return mirror;
  }

  private limitsOf(channel: string): ChannelLimits {
    const { events, ageMs } = this.log.limitsOf(channel);
    return { events: Math.min(events, this.mirrorEvents), ageMs };
  }

  private forgetMirror(mirror: Mirror): void {
    this.mirrors.delete(mirror.channel);
    this.unready.delete(mirror);
  }

  private get unfinished(): boolean {
    return (
      this.open && (!this.caughtUp || this.unready.size > 0 || this.wildcard.state === 'wanted' || this.dropWildcard)
    );
  }

  private attach(): void {
    if (this.attaching || !this.unfinished) return;
    this.attaching = true;
    const work = async (): Promise<void> => {
      while (this.unfinished) {
        await this.attachOnce().catch(() => sleep(RETRY_MS, undefined, { ref: false })); // the feed was lost, or an answer
        if (this.dropWildcard) await this.letGoOfWildcard().catch(() => {});
      }
      this.attaching = false;
    };
    void work();
  }

  private async attachOnce(): Promise<void> {
    const { generation } = this;
    const changed = (): boolean => generation !== this.generation;
    // Makes the epoch known, starts one in an empty store, and another where this one is broken.
    if (!this.caughtUp) await this.feed.mark(this.broken);
    if (changed() || this.broken !== undefined) return;

    const fresh = [...this.unready];
    const wild = this.wildcard.state === 'wanted';
    for (const mirror of fresh) mirror.aside = [];
    const unfollowed = fresh.filter((mirror) => !mirror.followed);
    await this.feed.follow(unfollowed.map((mirror) => mirror.channel));
    if (changed()) return;
    for (const mirror of unfollowed) mirror.followed = true;
    if (wild && !this.wildcard.followed) {
      await this.feed.followAll();
      if (changed()) return;
      this.wildcard.followed = true;
    }
    const names = fresh.map((mirror) => mirror.channel);
    const page = await this.log.tails(this.partition, names, (name) =>
      Math.min(this.limitsOf(name).events, LOAD_EVENTS),
    );
    const index = wild ? await this.log.index(this.partition) : undefined;
    await this.feed.mark();
    if (changed() || page.epoch !== this.epoch) return;

    for (const mirror of fresh) this.finish(mirror, page);
    if (index && this.wildcard.state === 'wanted') this.restOnWildcard(index);
    this.caughtUp = true;
    this.everCaughtUp = true;
    this.hooks.changed();
  }

  /**
   * From now on all events arrive. Mirrors that were wanted meanwhile need no loading of their own any more; and while they
   * set events aside for it, those who follow by pattern would miss them.
   */
  private restOnWildcard(index: Awaited<ReturnType<StreamLog['index']>>): void {
    this.wildcard.load(index);
    for (const mirror of this.unready) this.rest(mirror);
    this.unready.clear();
  }

  /** Ready at once, with nothing of the past. */
  private rest(mirror: Mirror): void {
    mirror.restart(this.wildcard.lastOf(mirror.channel));
    mirror.aside = [];
    mirror.ready = true;
  }

  private finish(mirror: Mirror, page: Page): void {
    const loaded = page.channels.get(mirror.channel);
    if (!loaded || this.mirrors.get(mirror.channel) !== mirror) return;
    for (const event of [...loaded.events, ...mirror.aside].sort((a, b) => a.seq - b.seq)) {
      mirror.take(event, this.partition, page.epoch);
    }
    mirror.aside = [];
    if (loaded.last > mirror.last) mirror.restart(loaded.last); // there was more, but it is not kept
    mirror.ready = true;
    this.unready.delete(mirror);
  }

  /** Named channels that rested on the wildcard are followed by themselves first. */
  private async letGoOfWildcard(): Promise<void> {
    const { generation } = this;
    const named = [...this.mirrors.values()].filter((mirror) => !mirror.onlyByPattern && !mirror.followed);
    await this.feed.follow(named.map((mirror) => mirror.channel));
    if (generation !== this.generation || !this.dropWildcard) return;
    for (const mirror of named) mirror.followed = true;
    this.feed.unfollowAll();
    this.wildcard.drop();
    this.dropWildcard = false;
    for (const mirror of this.mirrors.values()) if (mirror.onlyByPattern) this.forgetMirror(mirror);
  }
}
