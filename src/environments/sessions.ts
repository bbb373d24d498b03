import { hash, randomUUID } from 'node:crypto';
import { LogError } from '../streams/log.ts';
import { concealing } from '../tools/mcp/secrets.ts';
import type { EndedSession, SessionDirectory } from './directory.ts';
import type { Environment, EpisodeRequest } from './environment.ts';
import { episodeIdOf, holderOf, replicaOf } from './holder.ts';
import { LateWrites } from './late-writes.ts';
import { Places } from './places.ts';
import { type CallReport, Session, type SessionLimits } from './session.ts';
import { SessionError, sessionGone, sessionUnknown } from './session-error.ts';

/** An environment and what the settings allow it. */
export interface Hosted {
  readonly environment: Environment;
  readonly limits: SessionLimits;
  /** Sessions at the same time on this replica; 0: any number. */
  readonly maxSessions: number;
  readonly maxQueued: number;
}

/** What happens to sessions, for metrics and the episode log. */
export interface SessionsObserver {
  created(session: Session, request: EpisodeRequest): void;
  setUp(session: Session, ms: number, error?: unknown): void;
  called(session: Session, report: CallReport): void;
  ended(session: Session, end: EndedSession): void;
  tornDown(session: Session, ms: number, error?: unknown): void;
}

export type ReplicaState = 'alive' | 'gone' | 'unsure';

export interface SessionsOptions {
  readonly directory: SessionDirectory;
  readonly replica: string;
  readonly hosted: readonly Hosted[];
  readonly idleMs: number;
  readonly replicaState: (replica: string) => Promise<ReplicaState>;
  /** Whether the store has lost something just now, so that an id that it does not know may be known in a moment. */
  readonly recovering: () => Promise<boolean>;
  /** A place for one more session of a principal; undefined: it has as many as it may. */
  readonly acquire: (principal: string) => Promise<(() => void) | undefined>;
  readonly observe: SessionsObserver;
  readonly now?: () => number;
  /** Something went wrong that nobody waits for. */
  readonly failed: (message: string, error: unknown) => void;
}

/** Where a session is. */
export type Whereabouts =
  | { readonly where: 'here'; readonly session: Session }
  | {
      readonly where: 'elsewhere';
      /** The replica. */
      readonly owner: string;
      readonly environment: string;
      readonly episodeId: string;
    };

interface Held {
  readonly session: Session;
  readonly places: Places;
  readonly leave: () => void;
}

const SWEEP_MS = 5_000;
/** So many sessions are renewed at once. */
const RENEW_AT_ONCE = 200;

/** A principal and its session id as one name. */
export const sessionKey = (principal: string, sid: string): string =>
  hash('sha256', `${Buffer.byteLength(principal)}:${principal}${sid}`, 'base64url');

/** All sessions: those of this replica, and the way to those of others. */
export class Sessions {
  private readonly options: SessionsOptions;
  private readonly now: () => number;
  private readonly held = new Map<string, Held>();
  private readonly places: ReadonlyMap<Environment, Places>;
  private readonly timer: NodeJS.Timeout;
  private readonly writes = new LateWrites();
  private closing = false;
  private sweeping: Promise<void> | undefined;

  constructor(options: SessionsOptions) {
    this.options = options;
    this.now = options.now ?? Date.now;
    this.places = new Map(
      options.hosted.map(({ environment, maxSessions, maxQueued }) => [
        environment,
        new Places(maxSessions, maxQueued),
      ]),
    );
    this.timer = setInterval(() => void this.sweep(), SWEEP_MS).unref();
  }

  /** Sessions of this replica by environment and state. */
  counts(): ReadonlyMap<string, Readonly<Record<Session['state'], number>>> {
    const counts = new Map<string, Record<Session['state'], number>>();
    for (const { environment } of this.options.hosted) {
      counts.set(environment.name, { waiting: 0, setup: 0, ready: 0, failed: 0, ended: 0 });
    }
    for (const { session } of this.held.values()) {
      const count = counts.get(session.environment.name);
      if (count) count[session.state]++;
    }
    return counts;
  }

  /** A new id, which nobody else has. */
  async issue(principal: string): Promise<string> {
    const sid = randomUUID();
    await this.options.directory.issue(sessionKey(principal, sid));
    return sid;
  }

  /** Forgets an id that was issued and not used. */
  async drop(principal: string, sid: string): Promise<void> {
    await this.options.directory.drop(sessionKey(principal, sid));
  }

  /** Begins an episode. Throws a `SessionError`, an `EnvironmentError` or a `LogError`; nothing was begun then. */
  async create(hosted: Hosted, request: EpisodeRequest): Promise<void> {
    const { directory, acquire, observe } = this.options;
    const { environment, limits } = hosted;
    const { principal, sid } = request;
    const key = sessionKey(principal, sid);
    const exists = new SessionError('exists', 'Session already exists');
    if (this.held.has(key)) throw exists;
    await environment.check(request.choice);
    const places = this.places.get(environment) as Places;
    if (places.full) throw this.full(environment);
    const leave = await acquire(principal);
    if (!leave) throw new SessionError('full', 'You have as many sessions as you may; delete one or try again later.');
    const session = new Session({
      ...request,
      ...{ key, environment, limits, now: this.now },
      conceal: concealing(Object.values(request.secrets)),
      observe: {
        setUp: (one, ms, error) => {
          if (error !== undefined) this.freePlace(one); // nothing of it is left
          observe.setUp(one, ms, error);
        },
        called: (one, report) => observe.called(one, report),
        tornDown: (one, ms, error) => observe.tornDown(one, ms, error),
      },
    });
    try {
      if (this.closing) throw new SessionError('away', 'This gateway is about to stop.');
      if (this.held.has(key)) throw exists; // another request was faster
      this.held.set(key, { session, places, leave });
      await this.openIn(session);
      if (session.ended) throw sessionGone(session.ended); // it was deleted before it was there
      if (!places.take(session, () => session.begin())) throw this.full(environment);
    } catch (error) {
      if (this.held.get(key)?.session === session) this.held.delete(key);
      leave();
      void session.close('deleted'); // somebody may have begun to wait for it
      if (!(error instanceof SessionError && error.code === 'exists')) {
        directory.close(key, this.holder(session), 'deleted').catch(() => {});
      }
      throw error;
    }
    observe.created(session, request);
  }

  /** Throws a `SessionError` if there is no such session, or there is none any more. Counts as activity. */
  async find(principal: string, sid: string): Promise<Whereabouts> {
    const key = sessionKey(principal, sid);
    const held = this.held.get(key);
    if (held) {
      if (held.session.ended) throw sessionGone(held.session.ended);
      held.session.touch();
      return { where: 'here', session: held.session };
    }
    const { directory, replica, recovering } = this.options;
    const entry = await directory.visit(key);
    if (!entry || entry.state === 'issued') {
      if (await recovering()) throw new SessionError('away', 'It is not known just now where this session is.');
      throw sessionUnknown();
    }
    if (entry.state !== 'open') throw sessionGone(entry.state);
    const owner = replicaOf(entry.owner);
    if (owner === replica) throw sessionUnknown(); // opened just now, or not closed in time
    await this.checkOwner(key, entry.owner);
    return { where: 'elsewhere', owner, environment: entry.environment, episodeId: episodeIdOf(entry.owner) };
  }

  /** Whether an id was ever issued or used, as far as anybody remembers. */
  async isKnown(principal: string, sid: string): Promise<boolean> {
    const key = sessionKey(principal, sid);
    return this.held.has(key) || (await this.options.directory.visit(key)) !== undefined;
  }

  /** A session of this replica; undefined if it is not here. */
  local(principal: string, sid: string): Session | undefined {
    return this.held.get(sessionKey(principal, sid))?.session;
  }

  /** Ends a session of this replica; resolves when its teardown is over. */
  async end(session: Session, end: EndedSession): Promise<void> {
    const { directory, observe } = this.options;
    const first = session.ended === undefined;
    const closed = session.close(end);
    if (first) {
      observe.ended(session, end);
      await this.writes.write(() => directory.close(session.key, this.holder(session), end));
    }
    await closed;
    this.freePlace(session);
    const held = this.held.get(session.key);
    if (held?.session !== session) return;
    this.held.delete(session.key);
    held.leave();
  }

  /** Every session gets its teardown. */
  async close(): Promise<void> {
    this.closing = true;
    this.writes.close();
    clearInterval(this.timer);
    await this.sweeping;
    await Promise.all([...this.held.values()].map(({ session }) => this.end(session, 'stopped')));
  }

  /** Ends what is idle, and tells the others what lives here. */
  sweep(): Promise<void> {
    this.sweeping ??= this.sweepOnce()
      .catch((error: unknown) => {
        if (!(error instanceof LogError)) this.options.failed('Sessions could not be looked after.', error);
      })
      .finally(() => {
        this.sweeping = undefined;
      });
    return this.sweeping;
  }

  private async sweepOnce(): Promise<void> {
    const all = [...this.held.values()].map(({ session }) => session);
    for (let at = 0; at < all.length; at += RENEW_AT_ONCE) {
      await Promise.all(all.slice(at, at + RENEW_AT_ONCE).map((session) => this.look(session)));
    }
  }

  private async look(session: Session): Promise<void> {
    const { directory, idleMs } = this.options;
    if (session.ended) return;
    const renewed = await directory.renew(session.key, this.holder(session), session.environment.name);
    if (renewed === 'taken') {
      // Others took this gateway for dead, and the client was told so.
      this.endLater(session, 'lost');
      return;
    }
    if (renewed.askedAgoMs !== undefined) session.touch(this.now() - renewed.askedAgoMs);
    if (session.idleMs(this.now()) >= idleMs) this.endLater(session, 'expired');
  }

  private endLater(session: Session, end: EndedSession): void {
    this.end(session, end).catch((error: unknown) => this.options.failed('A session did not end in order.', error));
  }

  private freePlace(session: Session): void {
    this.places.get(session.environment)?.leave(session);
  }

  private holder({ episodeId }: Session): string {
    return holderOf(this.options.replica, episodeId);
  }

  private async openIn(session: Session): Promise<void> {
    const { directory, replica } = this.options;
    const { key, environment } = session;
    for (;;) {
      const entry = await directory.open(key, this.holder(session), environment.name);
      if (entry === 'opened') return;
      if (replicaOf(entry.owner) === replica) {
        await directory.close(key, entry.owner, 'lost'); // it is over: only its end could not be written
        continue;
      }
      try {
        await this.checkOwner(key, entry.owner);
      } catch (error) {
        if (error instanceof SessionError && error.code === 'gone') continue; // its id is free again
        throw error;
      }
      throw new SessionError('exists', 'Session already exists');
    }
  }

  /** Throws a `SessionError` if a replica is gone, and then nobody has to ask again. */
  private async checkOwner(key: string, holder: string): Promise<void> {
    const state = await this.options.replicaState(replicaOf(holder));
    if (state === 'alive') return;
    if (state === 'unsure') throw new SessionError('away', 'The gateway of this session cannot be reached just now.');
    await this.options.directory.close(key, holder, 'lost');
    throw sessionGone('lost');
  }

  private full(environment: Environment): SessionError {
    return new SessionError(
      'full',
      `The environment ${environment.name} has no place for another session; try again later.`,
    );
  }
}
