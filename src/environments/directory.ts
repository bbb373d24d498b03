/**
 * What is known of a session id:
 *
 *     issued   somebody was given it and has not used it yet
 *     open     an episode lives on some replica
 *     deleted  its client has ended it
 *     expired  nobody asked for it for too long
 *     stopped  its gateway was stopped
 *     lost     its gateway is gone
 */
export type SessionState = 'issued' | 'open' | EndedSession;
export type EndedSession = 'deleted' | 'expired' | 'stopped' | 'lost';

export interface SessionEntry {
  readonly state: SessionState;
  /** Who has it, or had it last: see `holder.ts`. */
  readonly owner: string;
  readonly environment: string;
}

/** `taken`: it is not this replica's any more. Otherwise: ms since another replica was asked for it, if one was. */
export type Renewed = { readonly askedAgoMs: number | undefined } | 'taken';

/**
 * Where all replicas look up sessions. Memory and Redis, one contract; a `key` stands for a principal and its session id.
 * Errors are `LogError`s; every command may be repeated after one without harm.
 */
export interface SessionDirectory {
  issue(key: string): Promise<void>;
  /** Forgets an id that was issued and not used. */
  drop(key: string): Promise<void>;
  /** Opens an id that is new, or was closed; otherwise tells who has it. */
  open(key: string, owner: string, environment: string): Promise<'opened' | SessionEntry>;
  /** Counts as activity of an open session. */
  visit(key: string): Promise<SessionEntry | undefined>;
  /** What its owner does while it lives: a store that has lost it gets it again. */
  renew(key: string, owner: string, environment: string): Promise<Renewed>;
  /** Only while it is still open on this owner. */
  close(key: string, owner: string, state: EndedSession): Promise<void>;
  /** A call whose client was lost before the end of the answer. */
  leave(key: string, call: string, taskId: string): Promise<void>;
  /** The same call again: it goes to the one that was left, once. */
  rejoin(key: string, call: string): Promise<string | undefined>;
}

/** How long an id that was issued may stay unused. */
export const ISSUED_MS = 900_000;
/** How long an open session is remembered without a sign of its owner. */
export const OPEN_MS = 3_600_000;
/** How long it is remembered what became of a session. */
export const TOMBSTONE_MS = 3_600_000;
/** How long the same call again is taken for a repetition of one whose client was lost. */
export const REJOIN_MS = 60_000;
