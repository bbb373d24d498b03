import { LogError } from '../streams/log.ts';
import { type Ending, type JobKind, lastWords } from './kind.ts';
import type { JobStore } from './store.ts';

export interface ReaperOptions {
  readonly store: JobStore;
  /** This replica, which is alive whatever the store says. */
  readonly replica: string;
  readonly kindOf: (name: string) => JobKind | undefined;
  /** An owner is dead when its lease was absent in every look for so long, and the store was steady throughout. */
  readonly holdOffMs: number;
  readonly reaped: (kind: string, owner: string) => void;
  /** Jobs that nobody here can end. */
  readonly unknownKind: (kind: string) => void;
  readonly now?: () => number;
}

const OWNER_LOST = { cause: 'owner_lost', message: 'The gateway that ran this job is gone.' } as const;
const END_LOST = { cause: 'store_lost', message: 'The record of how this job ended is gone.' } as const;

/**
 * Ends the jobs of replicas that are gone. Time decides only when to look; the fence in the store decides who writes, so a
 * replica that was merely slow loses its jobs but never writes beside their end.
 */
export class Reaper {
  private readonly options: ReaperOptions;
  private readonly now: () => number;
  private readonly absentSince = new Map<string, number>();
  private looking = false;

  constructor(options: ReaperOptions) {
    this.options = options;
    this.now = options.now ?? (() => performance.now());
  }

  /** Looks once; to be called every second or so. */
  async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      await this.lookOnce();
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      this.absentSince.clear(); // who could not be seen was not absent
    } finally {
      this.looking = false;
    }
  }

  private async lookOnce(): Promise<void> {
    const { store, replica, holdOffMs } = this.options;
    const owners = await store.owners();
    const now = this.now();
    const steadySince = store.steadySince();
    for (const owner of this.absentSince.keys()) if (owners.get(owner) !== false) this.absentSince.delete(owner);
    for (const [owner, alive] of owners) {
      if (alive || owner === replica) continue;
      const since = this.absentSince.get(owner) ?? now;
      this.absentSince.set(owner, since);
      if (now - Math.max(since, steadySince) < holdOffMs) continue;
      for (const id of await store.jobsOf(owner)) await this.reap(id, owner, OWNER_LOST);
      await store.bury(owner);
    }
  }

  /**
   * Ends the jobs of this replica that it has done with: a store that went back far enough has them running again, and
   * their owner lives. False: not all of them are known for sure, look again.
   */
  async lookAtOwn(doing: (id: string) => boolean): Promise<boolean> {
    const { store, replica } = this.options;
    const ids = await store.jobsOf(replica);
    // What was sent here is in the inbox from the moment it exists until it is begun.
    if ((await store.inbox(replica)).length > 0) return false;
    for (const id of ids) if (!doing(id)) await this.reap(id, replica, END_LOST);
    return true;
  }

  private async reap(id: string, owner: string, ending: Ending): Promise<void> {
    const { store, kindOf, reaped, unknownKind } = this.options;
    for (;;) {
      const page = await store.read(id, 0);
      const record = page?.record;
      if (!record || record.owner !== owner || record.state !== 'running') {
        await store.strike(id, owner); // only a leftover in the owner's list
        return;
      }
      const kind = kindOf(record.kind);
      if (!kind) {
        unknownKind(record.kind);
        return;
      }
      const { snapshot, from, last } = record;
      const log = { snapshot, from, last, events: page.events };
      const outcome = await store.reap(record, lastWords(kind, record, log, ending));
      if (outcome === 'reaped') reaped(record.kind, owner);
      if (outcome !== 'grown') return;
    }
  }
}
