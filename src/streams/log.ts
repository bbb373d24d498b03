import type { Place, Position } from './position.ts';

/** What a channel keeps. Both are exact; 0 events means that nothing is kept and only live followers see an event. */
export interface ChannelLimits {
  readonly events: number;
  readonly ageMs: number;
}

export type LimitsOf = (channel: string) => ChannelLimits;

export interface NewEvent {
  readonly channel: string;
  /** Opaque to the log: what a dialect encodes. */
  readonly data: string;
}

export interface StoredEvent extends Position {
  readonly channel: string;
  /** The number of the previous event of the same channel, given by the store; sequence numbers have holes, this chain has none. */
  readonly prev: number;
  /** The store no longer knew the channel's name: `prev` is only an upper bound of the true predecessor. */
  readonly prevForgotten: boolean;
  readonly data: string;
}

export interface AppendOptions {
  /** The same key and events again give the same ids; the same key with other events is refused. */
  readonly idempotency?: { readonly principal: string; readonly key: string };
}

/** One channel's share of a page or a tail. */
export interface ChannelEvents {
  /** Rising; only what is kept and not too old. */
  readonly events: readonly StoredEvent[];
  /** The channel's last number ever, or the highest forgotten one if the store does not know the name. Read before `events`. */
  readonly last: number;
}

export interface Page {
  readonly epoch: number;
  readonly channels: ReadonlyMap<string, ChannelEvents>;
  /**
   * Up to here the page is complete over all its channels: the smaller of the head, read before the events, and the last
   * number of every full page. Events beyond it are there to judge what was missed, not to be delivered.
   */
  readonly horizon: Position;
}

export interface Mark {
  readonly epoch: number;
  readonly head: Position;
  /** Store time. */
  readonly time: number;
}

/** The ordered life of one partition as this replica receives it. While the feed is open nothing is lost on it or reordered. */
export interface FeedListener {
  opened(): void;
  /** Nothing more comes from what was followed; `opened` starts anew, with nothing followed. */
  closed(): void;
  event(epoch: number, event: StoredEvent): void;
  marked(mark: Mark): void;
}

export interface Feed {
  /** Resolves when the store has confirmed: whatever is appended from now on arrives. */
  follow(channels: readonly string[]): Promise<void>;
  unfollow(channels: readonly string[]): void;
  /** Every channel of the partition, for patterns. */
  followAll(): Promise<void>;
  unfollowAll(): void;
  /**
   * Resolves when the mark has come back on this feed, and with it everything that was appended before it. `broken` names an
   * epoch that can no longer be trusted: the store starts another one, unless it already has.
   */
  mark(broken?: number): Promise<Mark>;
  close(): void;
}

export interface PartitionHealth {
  /** Commands are answered and the feed is open. */
  readonly up: boolean;
  /** Since the last mark came back on the feed, in ms; undefined if none ever has. */
  readonly markAgeMs: number | undefined;
  readonly lastError: string | undefined;
}

/** What a log tells about its store: how long it took to answer. */
export type ObserveStore = (what: 'append' | 'read' | 'mark' | 'job', ms: number) => void;

/**
 * Bounded, ordered, shared streams. One sequence of numbers per partition; a channel lives in one partition. Errors are
 * `LogError`s.
 */
export interface StreamLog {
  readonly partitions: number;
  readonly limitsOf: LimitsOf;
  partitionOf(channel: string): number;
  /** Atomic per partition: number, link, store, trim, announce. The places come in the order of the events. */
  append(events: readonly NewEvent[], options?: AppendOptions): Promise<readonly Place[]>;
  /** The kept events after a position, at most `page` of each channel. */
  read(partition: number, channels: readonly string[], after: Position, page: number): Promise<Page>;
  /** The newest kept events, at most `count(channel)` of each channel. */
  tails(partition: number, channels: readonly string[], count: (channel: string) => number): Promise<Page>;
  /** Every channel that the store knows, with its last number; `forgot` is the highest number among the forgotten ones. */
  index(partition: number): Promise<{ readonly forgot: number; readonly last: ReadonlyMap<string, number> }>;
  /** The names that match a pattern, sorted. */
  names(pattern: string): Promise<string[]>;
  /** Store time as this replica knows it, in ms. */
  now(partition: number): number;
  /** Per partition. */
  health(): readonly PartitionHealth[];
  /** The replica's one feed of a partition. */
  subscribe(partition: number, listener: FeedListener): Feed;
  close(): Promise<void>;
}

/**
 * `unavailable`  the store did not answer in time or refused; nothing will appear later than the deadline
 * `conflict`     the idempotency key was used for other events
 */
export type LogErrorCode = 'unavailable' | 'conflict';

export class LogError extends Error {
  override readonly name = 'LogError';
  readonly code: LogErrorCode;
  constructor(code: LogErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** At most this many names per partition; beyond it those whose last event is oldest are forgotten. */
export const MAX_NAMES = 100_000;
export const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000;
/** Keys remembered per principal and partition. */
export const MAX_IDEMPOTENCY_KEYS = 10_000;
/** A publish that has not been stored by then is refused, and will not appear later. */
export const APPEND_DEADLINE_MS = 2_000;
