import type {
  AppendOptions,
  Feed,
  FeedListener,
  LimitsOf,
  Mark,
  NewEvent,
  Page,
  StoredEvent,
  StreamLog,
} from '../../src/streams/log.ts';
import type { Place, Position } from '../../src/streams/position.ts';

/**
 * Rules of the log that can be left out, to see that the simulation notices:
 *
 *     mark      attaching does not wait for its mark to come back on the feed
 *     horizon   a page counts as complete although some of its channels have more
 *     reattach  a lost feed is followed again, as Redis clients do by themselves, and nothing is loaded
 *     missed    nobody is told about trimmed events
 */
export const RULES = ['mark', 'horizon', 'reattach', 'missed'] as const;
export type Rule = (typeof RULES)[number];

/** A log whose feed can lag and break, as one replica sees it. */
export class FaultyLog implements StreamLog {
  lagMs = 0;
  readonly limitsOf: LimitsOf;
  readonly partitions: number;
  private readonly store: () => StreamLog;
  private readonly without: Rule | undefined;
  private readonly feeds: FaultyFeed[] = [];

  constructor(store: () => StreamLog, without?: Rule) {
    this.store = store;
    this.without = without;
    this.limitsOf = store().limitsOf;
    this.partitions = store().partitions;
  }

  partitionOf(channel: string): number {
    return this.store().partitionOf(channel);
  }

  append(events: readonly NewEvent[], options?: AppendOptions): Promise<readonly Place[]> {
    return this.store().append(events, options);
  }

  async read(partition: number, channels: readonly string[], after: Position, page: number): Promise<Page> {
    const got = await this.store().read(partition, channels, after, page);
    if (this.without === 'horizon') {
      const all = [...got.channels.values()].flatMap(({ events }) => events);
      return { ...got, horizon: all.reduce<Position>((a, b) => (b.seq > a.seq ? b : a), got.horizon) };
    }
    if (this.without === 'missed') {
      const blind = [...got.channels].map(([channel, { events }]) => {
        const [first, ...rest] = events;
        return [channel, { last: 0, events: first ? [{ ...first, prev: 0 }, ...rest] : [] }] as const;
      });
      return { ...got, channels: new Map(blind) };
    }
    return got;
  }

  tails(partition: number, channels: readonly string[], count: (channel: string) => number): Promise<Page> {
    return this.store().tails(partition, channels, count);
  }

  index(partition: number): ReturnType<StreamLog['index']> {
    return this.store().index(partition);
  }

  names(pattern: string): Promise<string[]> {
    return this.store().names(pattern);
  }

  now(partition: number): number {
    return this.store().now(partition);
  }

  health(): ReturnType<StreamLog['health']> {
    return this.store().health();
  }

  subscribe(partition: number, listener: FeedListener): Feed {
    const feed = new FaultyFeed(this, partition, listener, this.store, this.without);
    this.feeds.push(feed);
    return feed;
  }

  /** The feed breaks, as when its connection is killed. Only for the memory log: Redis has real connections. */
  breakFeeds(): void {
    for (const feed of this.feeds) feed.break();
  }

  close(): Promise<void> {
    return this.store().close();
  }
}

class FaultyFeed implements Feed, FeedListener {
  private readonly log: FaultyLog;
  private readonly partition: number;
  private readonly listener: FeedListener;
  private readonly store: () => StreamLog;
  private readonly without: Rule | undefined;
  private readonly followed = new Set<string>();
  private readonly queue: { at: number; tell: () => void }[] = [];
  private followsAll = false;
  private everOpened = false;
  private timer: NodeJS.Timeout | undefined;
  private inner: Feed;
  private generation = 0;

  constructor(log: FaultyLog, partition: number, listener: FeedListener, store: () => StreamLog, without?: Rule) {
    this.log = log;
    this.partition = partition;
    this.listener = listener;
    this.store = store;
    this.without = without;
    this.inner = store().subscribe(partition, this.listenerOf(0));
  }

  break(): void {
    this.inner.close();
    this.closed();
    const generation = ++this.generation;
    setTimeout(() => {
      if (generation === this.generation)
        this.inner = this.store().subscribe(this.partition, this.listenerOf(generation));
    }, 10);
  }

  follow(channels: readonly string[]): Promise<void> {
    for (const channel of channels) this.followed.add(channel);
    return this.inner.follow(channels);
  }

  unfollow(channels: readonly string[]): void {
    for (const channel of channels) this.followed.delete(channel);
    this.inner.unfollow(channels);
  }

  followAll(): Promise<void> {
    this.followsAll = true;
    return this.inner.followAll();
  }

  unfollowAll(): void {
    this.followsAll = false;
    this.inner.unfollowAll();
  }

  async mark(broken?: number): Promise<Mark> {
    const mark = this.inner.mark(broken);
    if (this.without !== 'mark') {
      const got = await mark;
      await new Promise<void>((resolve) => this.later(resolve)); // behind everything that lags
      return got;
    }
    mark.catch(() => {});
    return { epoch: 0, head: { ms: 0, seq: 0 }, time: 0 };
  }

  close(): void {
    clearTimeout(this.timer);
    this.inner.close();
  }

  opened(): void {
    if (this.without === 'reattach' && this.everOpened) {
      this.inner.follow([...this.followed]).catch(() => {});
      if (this.followsAll) this.inner.followAll().catch(() => {});
      return;
    }
    this.everOpened = true;
    this.later(() => this.listener.opened());
  }

  closed(): void {
    if (this.without === 'reattach') return;
    this.followed.clear();
    this.later(() => this.listener.closed());
  }

  event(epoch: number, event: StoredEvent): void {
    this.later(() => this.listener.event(epoch, event));
  }

  marked(mark: Mark): void {
    this.later(() => this.listener.marked(mark));
  }

  /** Ignores what a feed that was broken still says. */
  private listenerOf(generation: number): FeedListener {
    const mine = (): boolean => generation === this.generation;
    return {
      opened: () => mine() && this.opened(),
      closed: () => mine() && this.closed(),
      event: (epoch, event) => mine() && this.event(epoch, event),
      marked: (mark) => mine() && this.marked(mark),
    };
  }

  /** In order, after the lag. */
  private later(tell: () => void): void {
    if (this.log.lagMs === 0 && this.queue.length === 0) {
      tell();
      return;
    }
    this.queue.push({ at: performance.now() + this.log.lagMs, tell });
    this.timer ??= setTimeout(() => this.drain(), this.log.lagMs);
  }

  private drain(): void {
    this.timer = undefined;
    for (let next = this.queue[0]; next && next.at <= performance.now(); next = this.queue[0]) {
      this.queue.shift();
      next.tell();
    }
    const [first] = this.queue;
    if (first) this.timer = setTimeout(() => this.drain(), Math.max(1, first.at - performance.now()));
  }
}
