import type { EndedSession } from './directory.ts';

/**
 * `unknown`   there is no such session for this principal
 * `gone`      there was one
 * `exists`    there already is one
 * `full`      the environment, or the principal, has as many as it may
 * `setup`     its setup has failed
 * `slow`      its setup takes longer than anybody waits
 * `busy`      it has as many calls at the same time as it may
 * `away`      it lives on a replica that cannot be reached just now
 */
export type SessionErrorCode = 'unknown' | 'gone' | 'exists' | 'full' | 'setup' | 'slow' | 'busy' | 'away';

export class SessionError extends Error {
  override readonly name = 'SessionError';
  readonly code: SessionErrorCode;
  /** The message is fit to be shown. */
  constructor(code: SessionErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

const ENDS: Readonly<Record<EndedSession, string>> = {
  deleted: 'Session deleted',
  expired: 'Session expired: nobody has used it for too long',
  stopped: 'Session ended: its gateway was stopped',
  lost: 'Session lost: its gateway is gone',
};

export const sessionGone = (end: EndedSession): SessionError => new SessionError('gone', ENDS[end]);
export const sessionUnknown = (): SessionError => new SessionError('unknown', 'Active environment not found');
