import { Redis } from 'ioredis';
import type { EndState, JobEvent } from '../../src/jobs/job.ts';
import { JobKeys } from '../../src/jobs/redis/keys.ts';
import { PartitionKeys } from '../../src/streams/redis/keys.ts';
import { parseRedisUrl } from '../../src/streams/redis/settings.ts';
import { type RunningRedis, startRedis } from '../support/redis.ts';
import { running } from '../support/running.ts';
import { ReplicaProcess } from './replica-process.ts';

/** What the store has of a job, read past everything that the product does with it. */
export interface Stored {
  readonly events: readonly JobEvent[];
  readonly hash: Readonly<Record<string, string>>;
}

/** A Redis of its own and replicas on it. */
export class Fleet {
  readonly redis: RunningRedis;
  readonly replicas: readonly ReplicaProcess[];
  readonly keys: JobKeys;
  readonly admin: Redis;

  private constructor(redis: RunningRedis, count: number, graceMs: number) {
    this.redis = redis;
    this.keys = new JobKeys(new PartitionKeys(parseRedisUrl(redis.url).keyPrefix, 0).base);
    this.admin = new Redis(redis.port, '127.0.0.1');
    this.replicas = Array.from({ length: count }, () => new ReplicaProcess(redis.url, graceMs));
    running.add(this);
  }

  static async start(count: number, graceMs = 0): Promise<Fleet> {
    const fleet = new Fleet(await startRedis(), count, graceMs);
    await Promise.all(fleet.replicas.map((replica) => replica.ready()));
    return fleet;
  }

  replica(i: number): ReplicaProcess {
    const replica = this.replicas[i];
    if (!replica) throw new RangeError(`no replica ${i}`);
    return replica;
  }

  async stored(id: string): Promise<Stored> {
    const entries = await this.admin.xrange(this.keys.log(id), '-', '+');
    const events = entries.map(([entry, fields]) => {
      const { d = '', e } = Object.fromEntries(
        fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1]]] : [])),
      ) as { d?: string; e?: EndState };
      return { seq: Number.parseInt(entry, 10), data: d, ...(e && { end: e }) };
    });
    return { events, hash: await this.admin.hgetall(this.keys.job(id)) };
  }

  async stop(): Promise<void> {
    running.delete(this);
    this.admin.disconnect();
    await Promise.all(this.replicas.map((replica) => replica.stop()));
    await this.redis.stop();
  }
}
