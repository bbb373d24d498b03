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

interface Known {
  readonly state: SessionState;
  readonly owner: string;
  readonly environment: string;
  readonly until: number;
  askedAt: number | undefined;
}

interface Left {
  readonly taskId: string;
  readonly until: number;
}

const SWEEP_EVERY_MS = 60_000;

/** The embedded directory: the same rules as the Lua scripts, in this process. */
export class MemoryDirectory implements SessionDirectory {
  private readonly now: () => number;
  private readonly sessions = new Map<string, Known>();
  private readonly left = new Map<string, Left>();
  private swept: number;

  constructor(now: () => number = Date.now) {
    this.now = now;
    this.swept = now();
  }

  async issue(key: string): Promise<void> {
    this.sweep();
    if (!this.known(key)) this.put(key, { state: 'issued', owner: '', environment: '' }, ISSUED_MS);
  }

  async drop(key: string): Promise<void> {
    if (this.sessions.get(key)?.state === 'issued') this.sessions.delete(key);
  }

  async open(key: string, owner: string, environment: string): Promise<'opened' | SessionEntry> {
    const known = this.known(key);
    // An owner opens an id only when it has none of it: its own is one whose end could not be written.
    if (known?.state === 'open' && known.owner !== owner) return entryOf(known);
    this.put(key, { state: 'open', owner, environment }, OPEN_MS);
    return 'opened';
  }

  async visit(key: string): Promise<SessionEntry | undefined> {
    const known = this.known(key);
    if (known?.state === 'open') known.askedAt = this.now();
    return known && entryOf(known);
  }

  async renew(key: string, owner: string, environment: string): Promise<Renewed> {
    const known = this.known(key);
    if (known && known.state !== 'issued' && (known.state !== 'open' || known.owner !== owner)) return 'taken';
    const askedAt = known?.askedAt;
    this.put(key, { state: 'open', owner, environment }, OPEN_MS, askedAt);
    return { askedAgoMs: askedAt === undefined ? undefined : Math.max(0, this.now() - askedAt) };
  }

  async close(key: string, owner: string, state: EndedSession): Promise<void> {
    const known = this.known(key);
    if (known?.state !== 'open' || known.owner !== owner) return;
    this.put(key, { state, owner, environment: known.environment }, TOMBSTONE_MS);
  }

  async leave(key: string, call: string, taskId: string): Promise<void> {
    this.sweep();
    this.left.set(`${key} ${call}`, { taskId, until: this.now() + REJOIN_MS });
  }

  async rejoin(key: string, call: string): Promise<string | undefined> {
    if (this.left.size === 0) return undefined;
    const name = `${key} ${call}`;
    const left = this.left.get(name);
    this.left.delete(name);
    return left && left.until > this.now() ? left.taskId : undefined;
  }

  private known(key: string): Known | undefined {
    const known = this.sessions.get(key);
    return known && known.until > this.now() ? known : undefined;
  }

  private put(key: string, entry: SessionEntry, ms: number, askedAt?: number): void {
    this.sessions.set(key, { ...entry, until: this.now() + ms, askedAt });
  }

  private sweep(): void {
    const now = this.now();
    if (now - this.swept < SWEEP_EVERY_MS) return;
    this.swept = now;
    for (const kept of [this.sessions, this.left]) {
      for (const [key, { until }] of kept) if (until <= now) kept.delete(key);
    }
  }
}

const entryOf = ({ state, owner, environment }: Known): SessionEntry => ({ state, owner, environment });
