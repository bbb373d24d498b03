import { randomUUID } from 'node:crypto';
import type { ChainableCommander, Redis } from 'ioredis';
import { matchesPattern } from '../channel-name.ts';
import { fingerprint, idempotencyName, principalName } from '../fingerprint.ts';
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
  type NewEvent,
  type ObserveStore,
  type Page,
  type PartitionHealth,
  type StoredEvent,
  type StreamLog,
} from '../log.ts';
import { partitionOf } from '../partition-of.ts';
import type { Place, Position } from '../position.ts';
import { parsePosition, parsePrev, RedisPartition } from './partition.ts';
import type { ScriptedRedis } from './scripts.ts';
import type { RedisSettings } from './settings.ts';

export interface RedisLogOptions {
  readonly settings: RedisSettings;
  readonly limitsOf: LimitsOf;
  /** New at every start; tests may name it. */
  readonly replica?: string;
  readonly maxNames?: number;
  readonly maxIdempotencyKeys?: number;
  readonly idempotencyMs?: number;
  readonly observe?: ObserveStore;
}

type Entry = [id: string, fields: ['e', string, 'p', string, 'd', string]];
type Answers = [error: Error | null, answer: unknown][];

/** More commands than this in one pipeline hold up everything else on the server. */
const CHANNELS_AT_ONCE = 1_000;

/** The shared store of all replicas: the rules are in lua/, this is the way to them. */
export class RedisLog implements StreamLog {
  readonly partitions: number;
  readonly limitsOf: LimitsOf;
  private readonly options: RedisLogOptions;
  /** The connections, which jobs share with the channels. */
  readonly parts: readonly RedisPartition[];

  constructor(options: RedisLogOptions) {
    const { settings, replica = randomUUID() } = options;
    this.options = options;
    this.partitions = settings.partitions;
    this.limitsOf = options.limitsOf;
    this.parts = Array.from(
      { length: this.partitions },
      (_, i) => new RedisPartition(settings, i, replica, options.observe),
    );
  }

  partitionOf(channel: string): number {
    return partitionOf(channel, this.partitions);
  }

  async append(events: readonly NewEvent[], { idempotency }: AppendOptions = {}): Promise<readonly Place[]> {
    const shares = new Map<number, [index: number, event: NewEvent][]>();
    for (const [i, event] of events.entries()) {
      const partition = this.partitionOf(event.channel);
      const share = shares.get(partition);
      if (share) share.push([i, event]);
      else shares.set(partition, [[i, event]]);
    }
    const key = idempotency && {
      principal: principalName(idempotency.principal),
      name: idempotencyName(idempotency.principal, idempotency.key),
      fingerprint: fingerprint(events),
    };
    const places: Place[] = [];
    const appendShare = async (partition: number, share: [number, NewEvent][]): Promise<void> => {
      const stored = await this.appendTo(partition, share, key);
      for (const [i, place] of stored.entries()) places[(share[i] as [number, NewEvent])[0]] = place;
    };
    if (key && (this.partitions > 1 || shares.size === 0)) {
      // The key's home partition is asked first, with no events if need be: it alone sees every use of the key.
      const home = partitionOf(key.name, this.partitions);
      await appendShare(home, shares.get(home) ?? []);
      shares.delete(home);
    }
    // All are awaited: an error must not be answered while another partition is still being written.
    const outcomes = await Promise.allSettled([...shares].map(([partition, share]) => appendShare(partition, share)));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed) throw failed.reason;
    return places;
  }

  async read(partition: number, channels: readonly string[], after: Position, page: number): Promise<Page> {
    const now = this.now(partition);
    return this.page(partition, channels, after.seq, page, (pipeline, key, channel) => {
      // A second of margin for the estimated clock; the exact age is judged by the server's own time below.
      const oldest = now - this.limitsOf(channel).ageMs - 1_000;
      const start = oldest > after.ms ? String(Math.floor(oldest)) : `(${after.ms}-${after.seq}`;
      pipeline.xrange(key, start, '+', 'COUNT', page);
    });
  }

  async tails(partition: number, channels: readonly string[], count: (channel: string) => number): Promise<Page> {
    return this.page(partition, channels, 0, Number.POSITIVE_INFINITY, (pipeline, key, channel) => {
      pipeline.xrevrange(key, '+', '-', 'COUNT', count(channel));
    });
  }

  async index(partition: number): Promise<{ forgot: number; last: ReadonlyMap<string, number> }> {
    const part = this.part(partition);
    const forgot = await part.query((redis) => redis.hget(part.keys.meta, 'forgot'));
    const last = new Map<string, number>();
    let cursor = '0';
    do {
      const [next, found] = await part.query((redis) => redis.zscan(part.keys.last, cursor, 'COUNT', CHANNELS_AT_ONCE));
      for (let i = 0; i < found.length; i += 2) last.set(found[i] as string, Number(found[i + 1]));
      cursor = next;
    } while (cursor !== '0');
    return { forgot: Number(forgot ?? 0), last };
  }

  async names(pattern: string): Promise<string[]> {
    const indexes = await Promise.all(this.parts.map((_, partition) => this.index(partition)));
    return indexes.flatMap(({ last }) => [...last.keys()].filter((name) => matchesPattern(pattern, name))).sort();
  }

  now(partition: number): number {
    return this.part(partition).clock.now();
  }

  subscribe(partition: number, listener: FeedListener): Feed {
    const part = this.part(partition);
    part.attachListener(listener);
    return part;
  }

  /**
   * The connection for commands to the first partition's server while there is one, for small state that needs no
   * stream. Keys there begin with `sharedPrefix`.
   */
  connection(): Redis | undefined {
    return this.part(0).current;
  }

  get sharedPrefix(): string {
    return `${this.options.settings.keyPrefix}{0}:`;
  }

  health(): readonly PartitionHealth[] {
    return this.parts.map((part) => part.health());
  }

  async close(): Promise<void> {
    await Promise.all(this.parts.map((part) => part.stop()));
  }

  private part(partition: number): RedisPartition {
    const part = this.parts[partition];
    if (!part) throw new RangeError(`no partition ${partition}`);
    return part;
  }

  private async appendTo(
    partition: number,
    share: readonly [number, NewEvent][],
    key: { principal: string; name: string; fingerprint: string } | undefined,
  ): Promise<Place[]> {
    const part = this.part(partition);
    const { keys } = part;
    const channels = new Map<string, number>();
    for (const [, { channel }] of share) if (!channels.has(channel)) channels.set(channel, channels.size + 1);
    const names = [...channels.keys()];
    const keyNames = [
      keys.meta,
      keys.last,
      keys.idempotency(key?.name ?? ''),
      keys.idempotencySet(key?.principal ?? ''),
      ...names.map((name) => keys.stream(name)),
    ];
    const rest = [
      key?.fingerprint ?? '',
      this.options.idempotencyMs ?? IDEMPOTENCY_MS,
      this.options.maxIdempotencyKeys ?? MAX_IDEMPOTENCY_KEYS,
      this.options.maxNames ?? MAX_NAMES,
      keys.streams,
      keys.all,
      names.length,
      ...names.flatMap((name) => {
        const { events, ageMs } = this.limitsOf(name);
        return [name, events, ageMs];
      }),
      ...share.flatMap(([, { channel, data }]) => [channels.get(channel) as number, data]),
    ];
    const [epoch, ids] = await part.append((redis, deadline) =>
      redis.sluiceAppend(keyNames.length, ...keyNames, Math.floor(deadline), ...rest),
    );
    return ids.map((id) => ({ ...parsePosition(id), partition, epoch: Number(epoch) }));
  }

  /**
   * A position that a client made up may have a time that is too early for its number; then whole pages lie before it. They
   * are passed over here, because a page that leads nowhere would be read again for ever.
   */
  private async pastForgedTime(
    part: RedisPartition,
    channel: string,
    after: number,
    full: number,
    entries: Entry[],
  ): Promise<RawEvent[]> {
    let raw = parseEntries(entries, channel);
    for (let end = raw.at(-1); end && raw.length >= full && end.seq <= after; end = raw.at(-1)) {
      const from = `(${end.ms}-${end.seq}`;
      const more = await part.query((redis) => redis.xrange(part.keys.stream(channel), from, '+', 'COUNT', full));
      raw = parseEntries(more as Entry[], channel);
    }
    return raw;
  }

  /** Time and head first, then for each channel its last number before its events: the order is what `missed` relies on. */
  private async page(
    partition: number,
    channels: readonly string[],
    after: number,
    full: number,
    range: (pipeline: ChainableCommander, key: string, channel: string) => void,
  ): Promise<Page> {
    const part = this.part(partition);
    const { keys } = part;
    let head: Head | undefined;
    let horizon: Position | undefined;
    const out = new Map<string, ChannelEvents>();
    for (let i = 0; i < channels.length || !head; i += CHANNELS_AT_ONCE) {
      const some = channels.slice(i, i + CHANNELS_AT_ONCE);
      const answers = await part.query((redis) =>
        runPipeline(redis, (pipeline) => {
          if (!head) pipeline.time().hmget(keys.meta, 'epoch', 'ms', 'seq', 'forgot', 'base');
          if (some.length > 0) pipeline.zmscore(keys.last, ...some);
          for (const channel of some) range(pipeline, keys.stream(channel), channel);
          pipeline.hget(keys.meta, 'epoch');
        }),
      );
      const epoch = answers.pop();
      if (!head) {
        head = parseHead(answers.shift() as [string, string], answers.shift() as (string | null)[]);
        horizon = head.position;
      }
      // A pipeline is not one step: a store that was emptied half way through looks like one that has trimmed everything.
      if (epoch === null || Number(epoch) !== head.epoch) {
        throw new LogError('unavailable', 'The event store lost its state while it was read.');
      }
      const scores = (some.length > 0 ? answers.shift() : []) as (string | null)[];
      for (const [j, channel] of some.entries()) {
        const raw = await this.pastForgedTime(part, channel, after, full, (answers[j] ?? []) as Entry[]);
        const end = raw.at(-1);
        if (end && raw.length >= full && end.seq < (horizon as Position).seq) horizon = { ms: end.ms, seq: end.seq };
        out.set(channel, {
          events: keptOf(raw, head, after, head.time - this.limitsOf(channel).ageMs),
          last: Number(scores[j] ?? head.forgot),
        });
      }
    }
    return { epoch: (head as Head).epoch, channels: out, horizon: horizon as Position };
  }
}

interface Head {
  readonly time: number;
  readonly epoch: number;
  readonly position: Position;
  readonly forgot: number;
  /** The number at which the epoch began. */
  readonly base: number;
}

interface RawEvent extends StoredEvent {
  readonly epoch: number;
}

const parseHead = ([seconds, micros]: [string, string], meta: (string | null)[]): Head => {
  const [epoch, ms, seq, forgot, base] = meta;
  if (epoch === null || epoch === undefined) throw new LogError('unavailable', 'The event store has lost its state.');
  return {
    time: Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
    epoch: Number(epoch),
    position: { ms: Number(ms), seq: Number(seq) },
    forgot: Number(forgot),
    base: Number(base),
  };
};

/** In rising order, whichever way they were read. */
const parseEntries = (entries: Entry[], channel: string): RawEvent[] =>
  entries
    .map(([id, [, epoch, , prev, , data]]) => ({
      ...parsePosition(id),
      ...parsePrev(prev),
      channel,
      data,
      epoch: Number(epoch),
    }))
    .sort((a, b) => a.seq - b.seq);

/** An entry of another epoch counts while its number lies before the current one; beyond it is a future that was lost. */
const keptOf = (raw: RawEvent[], head: Head, after: number, oldest: number): StoredEvent[] =>
  raw
    .filter(({ epoch, seq, ms }) => seq > after && ms >= oldest && (epoch === head.epoch || seq <= head.base))
    .map(({ epoch: _, ...event }) => event);

const runPipeline = async (redis: ScriptedRedis, fill: (pipeline: ChainableCommander) => void): Promise<unknown[]> => {
  const pipeline = redis.pipeline();
  fill(pipeline);
  const answers = ((await pipeline.exec()) ?? []) as Answers;
  for (const [error] of answers) if (error) throw error;
  return answers.map(([, answer]) => answer);
};
