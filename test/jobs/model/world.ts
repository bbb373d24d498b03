import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { JobError } from '../../../src/jobs/errors.ts';
import type { JobTimes } from '../../../src/jobs/jobs.ts';
import type { JobKind } from '../../../src/jobs/kind.ts';
import type { Approved } from '../../../src/jobs/store.ts';
import { LogError } from '../../../src/streams/log.ts';
import { eventually } from '../../streams/logs.ts';
import { listing, type Place, type Replica, testKind } from '../replicas.ts';
import { Client } from './client.ts';
import type { Fault, KindName, Operation, Story, Way } from './operations.ts';
import { Puppet } from './puppet.ts';

const KINDS: Record<KindName, JobKind> = {
  plain: testKind({ name: 'plain', maxBytes: 100_000_000 }),
  folding: testKind({ name: 'folding', maxEvents: 8, maxBytes: 100_000_000, snapshot: listing }),
  brief: testKind({ name: 'brief', maxEvents: 20, maxBytes: 100_000_000 }),
};
const REPLICAS = 3;

export interface Started {
  readonly id: string;
  readonly kind: JobKind;
  readonly puppet: Puppet;
  readonly owner: Replica;
  readonly clients: Client[];
  /** What those who answered were told, by question. */
  readonly outcomes: { readonly question: string; readonly approved: boolean; readonly outcome: Approved }[];
  /** Somebody was told that it will end. */
  cancelled: boolean;
  /** Its replica has died, or was taken for dead. */
  orphaned: boolean;
  /** The store was emptied after it had begun, or went back. */
  flushed: boolean;
}

export interface WorldOptions {
  readonly place: Place;
  readonly times: Partial<JobTimes>;
  /** Does something to the store; the promise resolves when it is over. */
  readonly fault?: (fault: Fault) => Promise<void>;
}

/** Some replicas, the jobs they run and the clients who follow these. */
export class World {
  readonly jobs: Started[] = [];
  readonly dead: Replica[] = [];
  readonly troubles: unknown[] = [];
  private readonly options: WorldOptions;
  private readonly puppets = new Map<string, Puppet>();
  private readonly busy = new Set<Promise<void>>();
  private readonly replicas: (Replica | undefined)[] = [];
  /** Replicas that came later. */
  private readonly newcomers = new Set<Replica>();
  private flushes = 0;
  private names = 0;

  constructor(options: WorldOptions) {
    this.options = options;
  }

  get living(): Replica[] {
    return this.replicas.filter((replica) => replica !== undefined);
  }

  async begin(): Promise<void> {
    for (let i = 0; i < REPLICAS; i++) await this.revive(i);
    for (const kind of ['plain', 'folding'] as const) {
      await this.operate({ what: 'start', on: this.jobs.length, kind, deaf: false });
    }
  }

  /** Nothing waits for anything, unless the story says so. */
  async play({ steps }: Story): Promise<void> {
    for (const { operation, wait } of steps) {
      this.background(this.operate(operation));
      if (wait === 1) await turn();
      else if (wait > 1) await sleep(wait);
    }
  }

  /** All faults are over, and what was begun has its time to end. */
  async rest(): Promise<void> {
    await this.within('what was asked for is answered', () => this.busy.size === 0);
    await this.within('answers and cancels reach the work', () => this.jobs.every((job) => this.heeded(job)));
    for (const { puppet, owner } of this.jobs) if (!this.dead.includes(owner)) this.watch(puppet.end());
    for (const job of this.jobs) {
      for (const replica of this.living) this.background(this.attach(job, replica, 0)); // the whole stream, as all see it
    }
    await this.within('every client has its end', async () => {
      await Promise.all(this.dead.map((replica) => this.options.place.expire(replica)));
      const [replica] = this.living;
      for (const client of this.jobs.flatMap(({ clients }) => clients)) {
        if (replica && !client.over && !client.replica) this.background(this.connect(client, replica));
      }
      return this.jobs.every(({ clients }) => clients.every(({ over }) => over));
    });
    await this.within('no job is left running', async () => {
      const records = await Promise.all(this.jobs.map(async ({ id }) => this.living[0]?.jobs.find(id)));
      return records.every((record) => record?.state !== 'running');
    });
    await Promise.all(this.busy);
  }

  async close(): Promise<void> {
    for (const { puppet } of this.jobs) puppet.stop();
    for (const { clients } of this.jobs) for (const client of clients) client.drop();
    await Promise.all(this.living.map((replica) => this.options.place.kill(replica)));
  }

  private async operate(operation: Operation): Promise<void> {
    const job = 'job' in operation ? pick(this.jobs, operation.job) : undefined;
    const replica = 'on' in operation ? pick(this.living, operation.on) : undefined;
    const clients = this.jobs.flatMap((each) => each.clients);
    const client = 'client' in operation ? pick(clients, operation.client) : undefined;
    switch (operation.what) {
      case 'start':
        if (replica) await this.start(replica, operation.kind, operation.deaf);
        break;
      case 'dispatch': {
        const owner = pick(this.living, operation.to);
        if (replica && owner) await this.dispatch(replica, owner, operation.deaf);
        break;
      }
      case 'emit':
        if (job)
          this.watch(job.puppet.emit(operation.count, job.kind === KINDS.plain ? operation.way : thin(operation.way)));
        break;
      case 'attach':
        if (job && replica) await this.attach(job, replica, Math.floor((shown(job) * operation.percent) / 100));
        break;
      case 'drop':
        client?.drop();
        break;
      case 'resume':
        if (client && replica && !client.replica) await this.connect(client, replica);
        break;
      case 'move':
        if (client && replica) await this.connect(client, replica);
        break;
      case 'cancel':
        if (job && replica && (await replica.jobs.cancel(job.id, 'ann', 'enough'))?.state === 'running')
          job.cancelled = true;
        break;
      case 'ask':
        if (job) this.watch(job.puppet.ask());
        break;
      case 'answer':
        if (job && replica) await this.answer(job, replica, operation.approved);
        break;
      case 'end':
        if (job) this.watch(job.puppet.end());
        break;
      case 'crash':
        if (replica) await this.crash(replica);
        break;
      case 'usurp':
        if (job && replica) await this.usurp(job, replica, operation.count);
        break;
      case 'pause':
      case 'flush':
      case 'back':
      case 'cut':
        await this.fault(operation);
    }
  }

  private async start(owner: Replica, name: KindName, deaf: boolean): Promise<void> {
    const kind = KINDS[name];
    const puppet = new Puppet(`${name}${++this.names}`, deaf);
    const { flushes } = this;
    const { id } = await owner.jobs.start({ kind, principal: 'ann' }, puppet.work);
    this.add(id, kind, puppet, owner, flushes);
  }

  private async dispatch(replica: Replica, owner: Replica, deaf: boolean): Promise<void> {
    const puppet = new Puppet(`sent${++this.names}`, deaf);
    this.puppets.set(puppet.name, puppet);
    const { flushes } = this;
    const { id } = await replica.jobs.dispatch({ kind: KINDS.plain, principal: 'ann' }, owner.name, puppet.name);
    this.add(id, KINDS.plain, puppet, owner, flushes);
  }

  private add(id: string, kind: JobKind, puppet: Puppet, owner: Replica, flushes: number): void {
    const nothing = { clients: [], outcomes: [], cancelled: false };
    const fate = { flushed: this.flushes !== flushes, orphaned: this.dead.includes(owner) };
    this.jobs.push({ id, kind, puppet, owner, ...nothing, ...fate });
  }

  private async attach(job: Started, replica: Replica, after: number): Promise<void> {
    const client = new Client(`client ${++this.names}`, job.id, after);
    job.clients.push(client);
    await this.connect(client, replica);
  }

  private async connect(client: Client, replica: Replica): Promise<void> {
    await client.connect(replica, () => !this.dead.includes(replica));
    if (client.gone === 'at all' && this.newcomers.has(replica)) client.gone = 'for a newcomer';
  }

  private async answer({ id, puppet, outcomes }: Started, replica: Replica, approved: boolean): Promise<void> {
    const question = `q${puppet.questions.size}`;
    const outcome = await replica.jobs.approve(id, 'ann', question, { approved });
    outcomes.push({ question, approved, outcome });
  }

  /** The process dies with everything that it holds; another one takes its place. */
  private async crash(replica: Replica): Promise<void> {
    const i = this.replicas.indexOf(replica);
    this.replicas[i] = undefined;
    this.dead.push(replica);
    for (const job of this.jobs) {
      if (job.owner === replica) job.orphaned = true;
      for (const client of job.clients) if (client.replica === replica) client.drop();
    }
    await this.options.place.kill(replica);
    await this.options.place.expire(replica);
    this.newcomers.add(await this.revive(i));
  }

  private async usurp(job: Started, replica: Replica, count: number): Promise<void> {
    const page = await replica.store.read(job.id, 0);
    if (page?.record.state !== 'running') return;
    job.orphaned = true;
    const { record, events } = page;
    const { keepMs, logMs } = job.kind;
    const words = job.kind.ended({ ...record, events }, { cause: 'owner_lost', message: 'So it seems.' }, record);
    const end = { state: 'interrupted', keepMs, logMs, snapshot: undefined } as const;
    const written = words.map((data, i) => {
      const seq = record.last + 1 + i;
      return i === words.length - 1 ? { seq, data, end: end.state } : { seq, data };
    });
    await this.options.place.expire(job.owner);
    await replica.store.reap(record, { events: written, asks: [], end });
    this.watch(job.puppet.emit(count, 'burst'));
  }

  private async revive(i: number): Promise<Replica> {
    const { place, times } = this.options;
    const replica = await place.replica({
      kinds: Object.values(KINDS),
      times,
      work: async (job, input) => this.puppets.get(input)?.work(job),
    });
    this.replicas[i] = replica;
    return replica;
  }

  private async fault(fault: Fault): Promise<void> {
    const flushed = (): void => {
      if (fault.what !== 'flush' && fault.what !== 'back') return;
      this.flushes++;
      for (const job of this.jobs) job.flushed = true;
    };
    flushed();
    await this.options.fault?.(fault);
    flushed(); // it may have waited for the store, as those who began a job meanwhile
  }

  /** What somebody was promised has happened, or cannot any more. */
  private heeded({ puppet, outcomes, cancelled, orphaned, flushed, clients }: Started): boolean {
    if (orphaned || flushed || puppet.ownEnd || clients.some(({ ended }) => ended !== undefined)) return true;
    if (cancelled) return puppet.job?.signal.aborted === true;
    return outcomes.every(({ question, outcome }) => outcome !== 'decided' || puppet.questions.get(question));
  }

  /** What the work does, which may wait for ever for a store or an answer that does not come. */
  private watch(doing: Promise<void>): void {
    doing.catch((error: unknown) => this.troubles.push(error));
  }

  /** Refusals that a client would see as such are no trouble; everything else is. */
  private background(operation: Promise<void>): void {
    const settled = operation
      .catch((error: unknown) => {
        if (!(error instanceof LogError || error instanceof JobError)) this.troubles.push(error);
      })
      .finally(() => this.busy.delete(settled));
    this.busy.add(settled);
  }

  private async within(promise: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    try {
      await eventually(async () => {
        try {
          return await condition();
        } catch (error) {
          if (error instanceof LogError) return false;
          throw error;
        }
      }, 25_000);
    } catch (error) {
      throw new Error(`It did not come to rest: ${promise}.`, { cause: error });
    }
  }
}

/** The highest number that anybody has seen. */
const shown = ({ clients }: Started): number => Math.max(0, ...clients.map(({ position }) => position));

/** Large events are for streams that stay whole: snapshots of them grow without end. */
const thin = (way: Way): Way => (way === 'fat' ? 'burst' : way);

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length];
