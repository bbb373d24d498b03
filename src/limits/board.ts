import { type CurrentRedis, SharedCounts } from './shared-counts.ts';

export interface BoardOptions {
  /** What is written on it. */
  readonly name: string;
  readonly replica: string;
  /** Absent: this process is the only one. */
  readonly redis?: CurrentRedis;
  /** In front of every key. */
  readonly keyPrefix?: string;
  /** What was not written anew for so long counts no more. */
  readonly freshMs: number;
  readonly now?: () => number;
}

interface Note<T> {
  readonly at: number;
  readonly value: T;
}

/**
 * Where every replica writes what it has, and all can read what they have together. While Redis is away each knows only of
 * itself. Times are the writers' own: replicas whose clocks differ by more than `freshMs` do not see each other.
 */
export class Board<T> {
  private readonly options: BoardOptions;
  private readonly key: string;
  private readonly shared: SharedCounts | undefined;
  private readonly now: () => number;
  private own: T | undefined;

  constructor(options: BoardOptions) {
    this.options = options;
    const { redis, keyPrefix = 'sluice:', name, now = Date.now } = options;
    this.key = `${keyPrefix}board:${name}`;
    this.shared = redis && new SharedCounts({ redis });
    this.now = now;
  }

  /** Writes this replica's part and reads the parts of all, its own first. */
  async exchange(value: T): Promise<readonly T[]> {
    this.own = value;
    const { replica, freshMs } = this.options;
    const note: Note<T> = { at: this.now(), value };
    const notes = await this.shared?.ask(async (redis) => {
      await redis.hset(this.key, replica, JSON.stringify(note));
      await redis.pexpire(this.key, freshMs * 10);
      return redis.hgetall(this.key);
    });
    const others: T[] = [];
    const stale: string[] = [];
    for (const [name, text] of Object.entries(notes ?? {})) {
      if (name === replica) continue;
      const { at, value: theirs } = JSON.parse(text) as Note<T>;
      if (this.now() - at < freshMs) others.push(theirs);
      else stale.push(name);
    }
    if (stale.length > 0) void this.shared?.ask((redis) => redis.hdel(this.key, ...stale));
    return [this.own, ...others];
  }

  /** Whether this replica is the one that speaks for all, until it has not asked for so long. */
  async speaks(topic: string, ms: number): Promise<boolean> {
    if (!this.shared) return true;
    const { replica } = this.options;
    const key = `${this.key}:${topic}`;
    const answer = await this.shared.ask(async (redis) => {
      if ((await redis.set(key, replica, 'PX', ms, 'NX')) === 'OK') return true;
      if ((await redis.get(key)) !== replica) return false;
      await redis.pexpire(key, ms);
      return true;
    });
    return answer ?? false;
  }

  async leave(): Promise<void> {
    await this.shared?.ask((redis) => redis.hdel(this.key, this.options.replica));
  }
}
