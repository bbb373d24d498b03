import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { RedisPartition } from '../streams/redis/partition.ts';
import {
  type EndedSession,
  ISSUED_MS,
  OPEN_MS,
  REJOIN_MS,
  type Renewed,
  type SessionDirectory,
  type SessionEntry,
  type SessionState,
  TOMBSTONE_MS,
} from './directory.ts';

const load = (name: string): string => readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');

type RawEntry = [state: string, owner: string | null, environment: string | null];

/** The scripts as commands of a connection. */
interface DirectoryCommands {
  sluiceSessionOpen(keys: 1, key: string, owner: string, environment: string, ms: number): Promise<RawEntry | null>;
  sluiceSessionVisit(keys: 1, key: string): Promise<RawEntry | null>;
  sluiceSessionRenew(keys: 1, key: string, owner: string, environment: string, ms: number): Promise<number>;
  sluiceSessionDrop(keys: 1, key: string): Promise<number>;
  sluiceSessionClose(keys: 1, key: string, owner: string, state: string, ms: number): Promise<number>;
}

const SCRIPTS = {
  sluiceSessionOpen: load('open'),
  sluiceSessionVisit: load('visit'),
  sluiceSessionRenew: load('renew'),
  sluiceSessionDrop: load('drop'),
  sluiceSessionClose: load('close'),
};

const prepared = new WeakSet<Redis>();

const withScripts = (redis: Redis): Redis & DirectoryCommands => {
  if (!prepared.has(redis)) {
    for (const [name, lua] of Object.entries(SCRIPTS)) redis.defineCommand(name, { lua });
    prepared.add(redis);
  }
  return redis as Redis & DirectoryCommands;
};

const entryOf = ([state, owner, environment]: RawEntry): SessionEntry => ({
  state: state as SessionState,
  owner: owner ?? '',
  environment: environment ?? '',
});

/** The directory that replicas share. */
export class RedisDirectory implements SessionDirectory {
  private readonly part: Pick<RedisPartition, 'query'>;
  private readonly base: string;

  /** `base` is in front of every key, the partition's hash tag included. */
  constructor(part: Pick<RedisPartition, 'query'>, base: string) {
    this.part = part;
    this.base = base;
  }

  async issue(key: string): Promise<void> {
    const name = this.session(key);
    await this.run(async (redis) => {
      if ((await redis.hsetnx(name, 's', 'issued')) === 1) await redis.pexpire(name, ISSUED_MS);
    });
  }

  async drop(key: string): Promise<void> {
    await this.run((redis) => redis.sluiceSessionDrop(1, this.session(key)));
  }

  async open(key: string, owner: string, environment: string): Promise<'opened' | SessionEntry> {
    const known = await this.run((redis) => redis.sluiceSessionOpen(1, this.session(key), owner, environment, OPEN_MS));
    return known === null ? 'opened' : entryOf(known);
  }

  async visit(key: string): Promise<SessionEntry | undefined> {
    const known = await this.run((redis) => redis.sluiceSessionVisit(1, this.session(key)));
    return known === null ? undefined : entryOf(known);
  }

  async renew(key: string, owner: string, environment: string): Promise<Renewed> {
    const answer = await this.run((redis) =>
      redis.sluiceSessionRenew(1, this.session(key), owner, environment, OPEN_MS),
    );
    return answer === -2 ? 'taken' : { askedAgoMs: answer === -1 ? undefined : answer };
  }

  async close(key: string, owner: string, state: EndedSession): Promise<void> {
    await this.run((redis) => redis.sluiceSessionClose(1, this.session(key), owner, state, TOMBSTONE_MS));
  }

  async leave(key: string, call: string, taskId: string): Promise<void> {
    await this.run((redis) => redis.set(this.call(key, call), taskId, 'PX', REJOIN_MS));
  }

  async rejoin(key: string, call: string): Promise<string | undefined> {
    return (await this.run((redis) => redis.getdel(this.call(key, call)))) ?? undefined;
  }

  private session(key: string): string {
    return `${this.base}ors:s:${key}`;
  }

  private call(key: string, call: string): string {
    return `${this.base}ors:c:${key}:${call}`;
  }

  private run<T>(command: (redis: Redis & DirectoryCommands) => Promise<T>): Promise<T> {
    return this.part.query((redis) => command(withScripts(redis)), 'job');
  }
}
