import type { Mark } from '../../streams/log.ts';
import type { RedisPartition } from '../../streams/redis/partition.ts';
import type { EndState, JobEvent } from '../job.ts';
import type { StoreListener, Watcher } from '../store.ts';

/** Marks come every second; a pause of this length means that one of them was late. */
const LATE_MS = 3_000;

/** `seq end data`; only data may hold spaces. */
const parseAnnouncement = (message: string): JobEvent => {
  const a = message.indexOf(' ');
  const b = message.indexOf(' ', a + 1);
  const end = message.slice(a + 1, b);
  return {
    seq: Number(message.slice(0, a)),
    data: message.slice(b + 1),
    ...(end !== '' && { end: end as EndState }),
  };
};

/** What the subscriber connection of a partition brings for jobs: their events, the bell, and how far it can be trusted. */
export class JobTopics {
  /** When state was last seen to be lost. */
  lostAt = Number.NEGATIVE_INFINITY;
  private readonly part: RedisPartition;
  private readonly watchers = new Map<string, Set<Watcher>>();
  private listener: StoreListener | undefined;
  private epoch: number | undefined;
  private since = performance.now();
  private markedAt = Number.NEGATIVE_INFINITY;

  constructor(part: RedisPartition) {
    this.part = part;
    part.attachTopics({
      opened: () => this.opened(),
      closed: () => {
        this.since = Number.POSITIVE_INFINITY;
      },
      message: (topic, message) => this.received(topic, message),
      rang: () => this.listener?.rang(),
      marked: (mark) => this.marked(mark),
    });
  }

  listen(listener: StoreListener): void {
    this.listener = listener;
  }

  watch(topic: string, watcher: Watcher): () => void {
    const known = this.watchers.get(topic);
    const set = known ?? new Set<Watcher>();
    this.watchers.set(topic, set);
    set.add(watcher);
    // Without a connection `opened` does it.
    void this.follow([topic], watcher);
    return () => {
      set.delete(watcher);
      if (set.size > 0 || this.watchers.get(topic) !== set) return;
      this.watchers.delete(topic);
      this.part.unfollowTopics([topic]);
    };
  }

  steadySince(): number {
    return performance.now() - this.markedAt > LATE_MS ? Number.POSITIVE_INFINITY : this.since;
  }

  private opened(): void {
    this.since = performance.now();
    void this.follow([...this.watchers.keys()]);
  }

  private async follow(topics: readonly string[], only?: Watcher): Promise<void> {
    if (topics.length === 0) return;
    try {
      await this.part.followTopics(topics);
    } catch {
      return; // the connection is gone or will be; the next one begins with `opened`
    }
    for (const topic of topics) {
      for (const watcher of this.watchers.get(topic) ?? []) if (!only || watcher === only) watcher.level();
    }
  }

  private received(topic: string, message: string): void {
    const watchers = this.watchers.get(topic);
    if (!watchers) return;
    const event = parseAnnouncement(message);
    for (const watcher of watchers) watcher.arrived(event);
  }

  private marked({ epoch }: Mark): void {
    const now = performance.now();
    if (now - this.markedAt > LATE_MS) this.since = now;
    this.markedAt = now;
    const { epoch: before } = this;
    this.epoch = epoch;
    if (before !== undefined && before !== epoch) {
      this.since = now;
      this.lostAt = now;
    }
    // Jobs may have begun before the first mark: what became of them until then nobody here has seen.
    if (before !== epoch) this.listener?.lost();
    this.listener?.rang();
  }
}
