import { LogError } from '../streams/log.ts';
import { type JobKind, lastWords } from './kind.ts';
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

const MESSAGE = 'The gateway that ran this job is gone.';

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
      for (const id of await store.jobsOf(owner)) await this.reap(id, owner);
      await store.bury(owner);
    }
  }

  private async reap(id: string, owner: string): Promise<void> {
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
      const outcome = await store.reap(record, lastWords(kind, log, { cause: 'owner_lost', message: MESSAGE }));
      if (outcome === 'reaped') reaped(record.kind, owner);
      if (outcome !== 'grown') return;
    }
  }
}
