import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { Redis } from 'ioredis';
import {
  APPEND_DEADLINE_MS,
  type Feed,
  type FeedListener,
  LogError,
  type Mark,
  type ObserveStore,
  type PartitionHealth,
  type StoredEvent,
} from '../log.ts';
import { MAX_EPOCH, type Position } from '../position.ts';
import { StoreClock } from './clock.ts';
import { PartitionKeys } from './keys.ts';
import { Link, within } from './link.ts';
import { type ScriptedRedis, withScripts } from './scripts.ts';
import { ANSWER_MS, connectionOptions, type RedisSettings } from './settings.ts';
import { findMaster } from './topology.ts';

const MARK_EVERY_MS = 1_000;
/** Large SSUBSCRIBEs hold up everything else on the server. */
const SUBSCRIBE_AT_ONCE = 512;

export const parsePosition = (text: string): Position => {
  const dash = text.indexOf('-');
  return { ms: Number(text.slice(0, dash)), seq: Number(text.slice(dash + 1)) };
};

/** `prev` as append.lua writes it: `~` in front of a number that is only an upper bound. */
export const parsePrev = (text: string): Pick<StoredEvent, 'prev' | 'prevForgotten'> =>
  text.startsWith('~')
    ? { prev: Number(text.slice(1)), prevForgotten: true }
    : { prev: Number(text), prevForgotten: false };

/** `epoch ms-seq prev channel data`; only data may hold spaces. */
const parseAnnouncement = (message: string): { epoch: number; event: StoredEvent } => {
  const a = message.indexOf(' ');
  const b = message.indexOf(' ', a + 1);
  const c = message.indexOf(' ', b + 1);
  const d = message.indexOf(' ', c + 1);
  const event: StoredEvent = {
    ...parsePosition(message.slice(a + 1, b)),
    ...parsePrev(message.slice(b + 1, c)),
    channel: message.slice(c + 1, d),
    data: message.slice(d + 1),
  };
  return { epoch: Number(message.slice(0, a)), event };
};

const isReply = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError';
/** The server at the other end is no longer the one to talk to. */
const isElsewhere = (error: unknown): boolean =>
  isReply(error) && /^(MOVED|ASK|READONLY|CLUSTERDOWN|MASTERDOWN)\b/.test(error.message);

/** What else the subscriber connection brings: topics that are no channels, and the bell of this replica. */
export interface TopicListener {
  opened(): void;
  /** Nothing is followed any more. */
  closed(): void;
  message(topic: string, message: string): void;
  rang(): void;
  marked(mark: Mark): void;
}

/** What other replicas announce to this one's own topic: it has something to do. */
const BELL = 'bell';

/**
 * One partition's two connections, both straight to its master: one for commands, and one subscriber that is ordered and
 * lossless while it lives. Everything rests on the second; marks that do not come back on it end it.
 */
export class RedisPartition implements Feed {
  readonly keys: PartitionKeys;
  readonly clock = new StoreClock();
  private readonly commands: Link;
  private readonly subscriber: Link;
  private readonly topic: string;
  private readonly observe: ObserveStore;
  private readonly awaited = new Map<string, (mark: Mark) => void>();
  private readonly beat: NodeJS.Timeout;
  private listener: FeedListener | undefined;
  private topics: TopicListener | undefined;
  private run: string | undefined;
  private lastMark: number | undefined;
  private latest: Mark | undefined;
  private lastError: string | undefined;

  constructor(settings: RedisSettings, partition: number, replica: string, observe: ObserveStore = () => {}) {
    this.observe = observe;
    this.keys = new PartitionKeys(settings.keyPrefix, partition);
    this.topic = this.keys.replica(replica);
    const make = (name: string) => async (): Promise<Redis> => {
      const node =
        settings.kind === 'cluster'
          ? await findMaster(settings, this.keys.meta)
          : settings.kind === 'standalone'
            ? settings.nodes[0]
            : undefined;
      return new Redis(connectionOptions(settings, node, name));
    };
    const failed = (error: unknown): void => {
      this.lastError = error instanceof Error ? error.message : String(error);
    };
    this.commands = new Link({
      make: make('sluice-commands'),
      prepare: async (redis) => {
        withScripts(redis);
      },
      opened: () => this.probe(),
      failed,
    });
    this.subscriber = new Link({
      make: make('sluice-subscriber'),
      prepare: async (redis) => {
        this.run = /run_id:([0-9a-f]+)/.exec(await redis.info('server'))?.[1];
        await redis.ssubscribe(this.topic);
        redis.on('smessage', (topic, message) => this.receive(topic, message));
      },
      opened: () => {
        this.listener?.opened();
        this.topics?.opened();
        this.probe();
      },
      closed: () => {
        this.listener?.closed();
        this.topics?.closed();
      },
      failed,
    });
    this.beat = setInterval(() => this.probe(), MARK_EVERY_MS);
    this.beat.unref();
  }

  /** Whether the feed still carries what is announced; a mark that does not come back ends it. */
  private probe(): void {
    if (!this.subscriber.redis || !this.commands.redis) return;
    this.mark().catch((error: unknown) => {
      this.lastError = error instanceof Error ? error.message : String(error);
    });
  }

  attachListener(listener: FeedListener): void {
    if (this.listener) throw new Error('A partition has one feed.');
    this.listener = listener;
    if (this.subscriber.redis) queueMicrotask(() => listener.opened());
  }

  attachTopics(listener: TopicListener): void {
    if (this.topics) throw new Error('A partition has one listener for other topics.');
    this.topics = listener;
    const last = this.latest;
    if (this.subscriber.redis) {
      queueMicrotask(() => {
        listener.opened();
        if (last) listener.marked(last);
      });
    }
  }

  health(): PartitionHealth {
    return {
      up: this.commands.redis !== undefined && this.subscriber.redis !== undefined,
      markAgeMs: this.lastMark === undefined ? undefined : performance.now() - this.lastMark,
      lastError: this.lastError,
    };
  }

  async stop(): Promise<void> {
    clearInterval(this.beat);
    this.listener = undefined;
    this.topics = undefined;
    await Promise.all([this.commands.close(), this.subscriber.close()]);
  }

  // The feed

  follow(channels: readonly string[]): Promise<void> {
    return this.followTopics(channels.map((channel) => this.keys.stream(channel)));
  }

  unfollow(channels: readonly string[]): void {
    this.unfollowTopics(channels.map((channel) => this.keys.stream(channel)));
  }

  followAll(): Promise<void> {
    return this.followTopics([this.keys.all]);
  }

  unfollowAll(): void {
    this.unfollowTopics([this.keys.all]);
  }

  /** Resolves when the store has confirmed. */
  async followTopics(topics: readonly string[]): Promise<void> {
    for (let i = 0; i < topics.length; i += SUBSCRIBE_AT_ONCE) {
      await this.subscribed(topics.slice(i, i + SUBSCRIBE_AT_ONCE));
    }
  }

  unfollowTopics(topics: readonly string[]): void {
    for (let i = 0; i < topics.length; i += SUBSCRIBE_AT_ONCE) {
      const some = topics.slice(i, i + SUBSCRIBE_AT_ONCE);
      this.subscriber.redis?.sunsubscribe(...some).catch(() => {}); // lost with the connection: unsubscribed as well
    }
  }

  async mark(broken?: number): Promise<Mark> {
    const subscriber = this.subscriber.redis;
    if (!subscriber) throw new LogError('unavailable', 'The event feed is away.');
    const token = randomBytes(9).toString('base64url');
    let back: Mark | undefined;
    const arrived = new Promise<Mark>((resolve) => {
      this.awaited.set(token, (mark) => {
        back = mark;
        resolve(mark);
      });
    });
    try {
      const { run } = await this.touch(token, broken);
      if (run !== this.run) throw new Error('Commands and feed are on different servers.');
      return await within(ANSWER_MS, arrived, 'A mark');
    } catch (error) {
      if (error instanceof LogError) throw error; // the mark was not made, which says nothing about the feed
      // This process may have been busy for so long that the mark waits in the socket: read it before judging.
      await turn();
      await turn();
      if (back) return back;
      if (this.subscriber.redis === subscriber) this.subscriber.reset();
      throw new LogError('unavailable', 'A mark did not come back.', error);
    } finally {
      this.awaited.delete(token);
    }
  }

  close(): void {
    this.listener = undefined;
  }

  // Commands

  /** The connection for commands while there is one. */
  get current(): Redis | undefined {
    return this.commands.redis;
  }

  /** The connection for commands, or the error that says that it is away. Nothing is queued. */
  connection(): ScriptedRedis {
    const redis = this.commands.redis;
    if (!redis) throw new LogError('unavailable', 'The event store is away.');
    return redis as ScriptedRedis;
  }

  /** Runs a read, or something that may be repeated: one that takes too long may still be executed. */
  async query<T>(run: (redis: ScriptedRedis) => Promise<T>, what: 'read' | 'job' = 'read'): Promise<T> {
    const redis = this.connection();
    const begin = performance.now();
    try {
      const answer = await within(ANSWER_MS, run(redis), 'Asking Redis');
      this.observe(what, performance.now() - begin);
      return answer;
    } catch (error) {
      if (isElsewhere(error) && this.commands.redis === redis) this.commands.reset();
      throw new LogError('unavailable', 'The event store did not answer.', error);
    }
  }

  /**
   * Runs append.lua with a deadline, given to `run` in store time. A command that was written is answered with an error only
   * once its deadline has passed: until then the server may still execute it.
   */
  async append<T>(run: (redis: ScriptedRedis, deadline: number) => Promise<T>): Promise<T> {
    this.connection();
    const deadline = this.clock.now() + APPEND_DEADLINE_MS;
    for (let attempt = 1; ; attempt++) {
      const redis = this.connection();
      const begin = performance.now();
      try {
        const answer = await this.beforeDeadline(run(redis, deadline), deadline);
        this.observe('append', performance.now() - begin);
        return answer;
      } catch (error) {
        if (!isReply(error)) throw new LogError('unavailable', 'The event store did not answer in time.', error);
        const code = error.message.split(' ', 1)[0];
        if (code === 'CONFLICT') throw new LogError('conflict', 'The idempotency key was used for other events.');
        if (isElsewhere(error) && this.commands.redis === redis) this.commands.reset();
        if (attempt === 1 && (code === 'NOEPOCH' || code === 'BROKEN')) {
          await this.touch('', undefined); // lost state: a mark starts a new epoch
          continue;
        }
        throw new LogError('unavailable', 'The event store refused the events.', error);
      }
    }
  }

  private async beforeDeadline<T>(answer: Promise<T>, deadline: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const passed = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.clock.untilPassed(deadline)); // bare, as in `within`
    });
    try {
      return await Promise.race([
        answer.catch(async (error: unknown) => {
          if (!isReply(error)) await sleep(this.clock.untilPassed(deadline)); // the connection is gone, the command may be not
          throw error;
        }),
        passed.then(async () => {
          await turn();
          await turn(); // an answer that waits in the socket counts
          throw new Error('The deadline has passed.');
        }),
      ]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs mark.lua without waiting for its return on the feed. */
  private async touch(token: string, broken: number | undefined): Promise<{ run: string }> {
    const redis = this.connection();
    const sent = performance.now();
    try {
      const fresh = String(randomInt(MAX_EPOCH + 1));
      const call = redis.sluiceMark(2, this.keys.meta, this.keys.last, this.topic, token, fresh, String(broken ?? ''));
      const [, , , now, run] = await within(ANSWER_MS, call, 'A mark');
      const back = performance.now();
      this.clock.learn(sent, back, Number(now));
      this.observe('mark', back - sent);
      return { run };
    } catch (error) {
      if (this.commands.redis === redis && (!isReply(error) || isElsewhere(error))) this.commands.reset();
      throw new LogError('unavailable', 'The event store did not answer a mark.', error);
    }
  }

  private async subscribed(topics: string[]): Promise<void> {
    const redis = this.subscriber.redis;
    if (!redis) throw new LogError('unavailable', 'The event feed is away.');
    try {
      await within(ANSWER_MS, redis.ssubscribe(...topics), 'Subscribing');
    } catch (error) {
      if (this.subscriber.redis === redis) this.subscriber.reset();
      throw new LogError('unavailable', 'The event feed could not be followed.', error);
    }
  }

  private receive(topic: string, message: string): void {
    if (topic !== this.topic) {
      if (!this.keys.isChannels(topic)) {
        this.topics?.message(topic, message);
        return;
      }
      const { epoch, event } = parseAnnouncement(message);
      this.listener?.event(epoch, event);
      return;
    }
    if (message === BELL) {
      this.topics?.rang();
      return;
    }
    const [token = '', epoch, head = '', time] = message.split(' ');
    const mark: Mark = { epoch: Number(epoch), head: parsePosition(head), time: Number(time) };
    this.lastMark = performance.now();
    this.latest = mark;
    this.listener?.marked(mark);
    this.topics?.marked(mark);
    this.awaited.get(token)?.(mark);
  }
}
