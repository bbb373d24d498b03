import { idempotencyName, principalName } from '../../streams/fingerprint.ts';
import { MAX_IDEMPOTENCY_KEYS } from '../../streams/log.ts';
import { partitionOf } from '../../streams/partition-of.ts';
import type { RedisPartition } from '../../streams/redis/partition.ts';
import type { Decision, EndState, JobEvent, JobFacts, JobRecord, JobState } from '../job.ts';
import {
  type Appended,
  type Approved,
  type Batch,
  type BatchEnd,
  type Cancelled,
  type Command,
  type Created,
  type JobPage,
  type JobStore,
  LEASE_MS,
  MAX_INBOX,
  type NewJob,
  RECOVERY_MS,
  type Reaped,
  type StoreListener,
  type Watcher,
  type WholeJob,
} from '../store.ts';
import { JobKeys } from './keys.ts';
import { type JobCommands, type RawEntry, withJobScripts } from './scripts.ts';
import { JobTopics } from './topics.ts';

/** So many commands of an inbox are read at once. */
const INBOX_PAGE = 100;

const decisionText = (decision: Decision | undefined): string =>
  decision ? `${decision.approved ? 1 : 0} ${decision.note ?? ''}` : '';

const parseDecision = (text: string): Decision | undefined =>
  text === '' ? undefined : { approved: text.startsWith('1'), ...(text.length > 2 && { note: text.slice(2) }) };

const endArguments = (end: BatchEnd | undefined): (string | number)[] =>
  end ? [end.state, end.keepMs, end.logMs, end.snapshot ?? ''] : ['', 0, 0, ''];

const parseEntry = ([id, fields]: RawEntry): JobEvent => {
  const [, data = '', , end] = fields;
  return { seq: Number.parseInt(id, 10), data, ...(end !== undefined && { end: end as EndState }) };
};

const parseRecord = (id: string, hash: Readonly<Record<string, string>>): JobRecord => ({
  id,
  kind: hash.kind ?? '',
  principal: hash.principal ?? '',
  owner: hash.owner ?? '',
  about: hash.about ?? '',
  created: Number(hash.created),
  state: hash.state as JobState,
  last: Number(hash.last),
  from: Number(hash.from),
  snapshot: hash.snap,
  cancel: hash.cancel,
  approvals: new Map(
    Object.entries(hash)
      .filter(([field]) => field.startsWith('a:'))
      .map(([field, text]) => [field.slice(2), parseDecision(text)]),
  ),
});

/** The shared store of all replicas: the rules are in lua/, this is the way to them. */
export class RedisJobStore implements JobStore {
  private readonly lanes: readonly {
    readonly part: RedisPartition;
    readonly keys: JobKeys;
    readonly topics: JobTopics;
  }[];

  constructor(partitions: readonly RedisPartition[]) {
    this.lanes = partitions.map((part) => ({ part, keys: new JobKeys(part.keys.base), topics: new JobTopics(part) }));
  }

  listen(listener: StoreListener): void {
    for (const { topics } of this.lanes) topics.listen(listener);
  }

  newId(make: () => string, principal: string, key?: string): string {
    if (key === undefined || this.lanes.length === 1) return make();
    const home = partitionOf(idempotencyName(principal, key), this.lanes.length);
    for (;;) {
      const id = make();
      if (this.partitionOf(id) === home) return id;
    }
  }

  async create(job: NewJob): Promise<Created> {
    const { part } = this.of(job.id);
    const { id, owner, kind, principal, about, idempotency, input, events } = job;
    const topic = input === undefined ? '' : this.of(id).keys.replicas + owner;
    const [outcome, value = ''] = await part.append((redis, deadline) =>
      withJobScripts(redis).sluiceJobCreate(
        7,
        ...this.creationKeys(job),
        ...[Math.floor(deadline), id, owner, kind, principal, about],
        ...[idempotency?.fingerprint ?? '', idempotency?.keepMs ?? 0, MAX_IDEMPOTENCY_KEYS],
        ...[topic, input ?? '', MAX_INBOX, ...events],
      ),
    );
    if (outcome === 'created') return { outcome, created: Number(value) };
    return outcome === 'known' ? { outcome, id: value } : { outcome };
  }

  async discard(job: NewJob): Promise<void> {
    const { id, owner, events, idempotency } = job;
    await this.run(id, (redis) =>
      redis.sluiceJobDiscard(7, ...this.creationKeys(job), id, owner, events.length, idempotency?.fingerprint ?? ''),
    );
  }

  async append({ id, owner }: JobFacts, { events, asks, end, collapse }: Batch): Promise<Appended> {
    const [first] = events;
    if (!first) return 'stored';
    return this.run(id, (redis) =>
      redis.sluiceJobEmit(
        4,
        ...this.writingKeys(id, owner),
        ...[id, owner, first.seq, ...endArguments(end)],
        ...[collapse?.from ?? '', collapse?.snapshot ?? ''],
        ...[asks.length, ...asks, ...events.map(({ data }) => data)],
      ),
    );
  }

  async restore(whole: WholeJob): Promise<Appended> {
    const { id, owner, kind, principal, about, created, from, snapshot, cancel, approvals, events, end } = whole;
    return this.run(id, (redis) =>
      redis.sluiceJobRestore(
        4,
        ...this.writingKeys(id, owner),
        ...[id, owner, kind, principal, about, created],
        ...[from, snapshot ?? '', cancel ?? '', ...endArguments(end)],
        ...[approvals.size, ...[...approvals].flatMap(([name, decision]) => [name, decisionText(decision)])],
        ...events.map(({ data }) => data),
      ),
    );
  }

  async read(id: string, after: number): Promise<JobPage | undefined> {
    const { keys } = this.of(id);
    const [fields, entries] = await this.run(id, (redis) =>
      redis.sluiceJobRead(2, keys.job(id), keys.log(id), Math.min(after, Number.MAX_SAFE_INTEGER)),
    );
    const hash = Object.fromEntries(fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1] ?? '']] : [])));
    if (hash.state === undefined) return undefined;
    const record = parseRecord(id, hash);
    if (record.state === 'running' || entries.length > 0 || after >= record.last) {
      return { record, events: entries.map(parseEntry) };
    }
    // The stream has expired before the job: the snapshot and the terminal event stand for it.
    const final: JobEvent = { seq: record.last, data: hash.final ?? '', end: record.state };
    return { record: { ...record, from: record.last, snapshot: hash.whole }, events: [final] };
  }

  async cancel(id: string, principal: string | undefined, reason: string): Promise<Cancelled> {
    const { keys } = this.of(id);
    const state = await this.run(id, (redis) =>
      redis.sluiceJobCancel(1, keys.job(id), id, principal ?? '', reason, keys.inboxes, keys.replicas),
    );
    return state === null ? undefined : { state: state as JobState };
  }

  async approve(id: string, principal: string | undefined, approval: string, decision: Decision): Promise<Approved> {
    const { keys } = this.of(id);
    const text = decisionText(decision);
    const outcome = await this.run(id, (redis) =>
      redis.sluiceJobApprove(1, keys.job(id), id, principal ?? '', approval, text, keys.inboxes, keys.replicas),
    );
    return outcome ?? undefined;
  }

  watch(id: string, watcher: Watcher): () => void {
    const { keys, topics } = this.of(id);
    return topics.watch(keys.log(id), watcher);
  }

  async inbox(owner: string): Promise<readonly Command[]> {
    const pages = await Promise.all(
      this.lanes.map(({ part, keys }) =>
        part.query((redis) => redis.xrange(keys.inbox(owner), '-', '+', 'COUNT', INBOX_PAGE)),
      ),
    );
    return pages.flatMap((entries, lane) =>
      entries.map(([entry, [, id = '', , input]]) => ({
        entry: `${lane}:${entry}`,
        id,
        ...(input !== undefined && { input }),
      })),
    );
  }

  async done(owner: string, commands: readonly Command[]): Promise<void> {
    await Promise.all(
      this.lanes.map(async ({ part, keys }, lane) => {
        const mine = commands.filter(({ entry }) => Number.parseInt(entry, 10) === lane);
        const ids = mine.map(({ entry }) => entry.slice(entry.indexOf(':') + 1));
        if (ids.length > 0) await part.query((redis) => redis.xdel(keys.inbox(owner), ...ids));
      }),
    );
  }

  async renew(owner: string): Promise<boolean> {
    const { part, keys } = this.lane(0);
    return (await part.query((redis) => withJobScripts(redis).sluiceJobLease(1, keys.lease(owner), LEASE_MS))) === 1;
  }

  async retire(owner: string): Promise<void> {
    await Promise.all(this.lanes.map((lane) => this.buryIn(lane, owner)));
    const { part, keys } = this.lane(0);
    await part.query((redis) => redis.del(keys.lease(owner)));
  }

  async owners(): Promise<ReadonlyMap<string, boolean>> {
    const names = new Set(
      (
        await Promise.all(this.lanes.map(({ part, keys }) => part.query((redis) => redis.smembers(keys.owners))))
      ).flat(),
    );
    const alive = await Promise.all([...names].map(async (owner) => [owner, await this.alive(owner)] as const));
    return new Map(alive);
  }

  async alive(owner: string): Promise<boolean> {
    const { part, keys } = this.lane(0);
    return (await part.query((redis) => redis.exists(keys.lease(owner)))) === 1;
  }

  async jobsOf(owner: string): Promise<readonly string[]> {
    const sets = await Promise.all(
      this.lanes.map(({ part, keys }) => part.query((redis) => redis.smembers(keys.jobs(owner)))),
    );
    return sets.flat();
  }

  async reap({ id, owner, last }: JobRecord, { events, end }: Batch): Promise<Reaped> {
    const { keys } = this.of(id);
    const names = [keys.job(id), keys.log(id), keys.jobs(owner)];
    const rest = [id, owner, last, ...endArguments(end), ...events.map(({ data }) => data)];
    return this.run(id, (redis) => redis.sluiceJobReap(3, ...names, ...rest));
  }

  async strike(id: string, owner: string): Promise<void> {
    const { part, keys } = this.of(id);
    await part.query((redis) => redis.srem(keys.jobs(owner), id));
  }

  async bury(owner: string): Promise<void> {
    await Promise.all(this.lanes.map((lane) => this.buryIn(lane, owner)));
  }

  steadySince(): number {
    return Math.max(...this.lanes.map(({ topics }) => topics.steadySince()));
  }

  async recovering(id: string): Promise<boolean> {
    const { part, topics } = this.of(id);
    await part.mark(); // what was lost just now is not known here yet
    return performance.now() - topics.lostAt < RECOVERY_MS;
  }

  private async buryIn({ part, keys }: RedisJobStore['lanes'][number], owner: string): Promise<void> {
    const names = [keys.jobs(owner), keys.owners, keys.inbox(owner)];
    await part.query((redis) => withJobScripts(redis).sluiceJobBury(3, ...names, owner));
  }

  private partitionOf(id: string): number {
    return partitionOf(id, this.lanes.length);
  }

  private of(id: string): RedisJobStore['lanes'][number] {
    return this.lane(this.partitionOf(id));
  }

  private lane(partition: number): RedisJobStore['lanes'][number] {
    const lane = this.lanes[partition];
    if (!lane) throw new RangeError(`no partition ${partition}`);
    return lane;
  }

  private run<T>(id: string, script: (redis: JobCommands) => Promise<T>): Promise<T> {
    return this.of(id).part.query((redis) => script(withJobScripts(redis)), 'job');
  }

  private writingKeys(id: string, owner: string): string[] {
    const { keys } = this.of(id);
    return [keys.job(id), keys.log(id), keys.jobs(owner), keys.owners];
  }

  private creationKeys({ id, owner, principal, idempotency }: NewJob): string[] {
    const { keys } = this.of(id);
    const key = idempotency ? idempotencyName(principal, idempotency.key) : '';
    return [...this.writingKeys(id, owner), keys.inbox(owner), keys.key(key), keys.keysOf(principalName(principal))];
  }
}
