/**
 * `limit`     the principal has as many running jobs as it may
 * `conflict`  the idempotency key was used for something else
 * `busy`      the replica that should do the work has too much waiting
 * `away`      the replica that should do the work is gone
 * `stopping`  this gateway takes no new work
 */
export type JobErrorCode = 'limit' | 'conflict' | 'busy' | 'away' | 'stopping';

/** A job could not be started. */
export class JobError extends Error {
  override readonly name = 'JobError';
  readonly code: JobErrorCode;
  constructor(code: JobErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The reason of an aborted signal: somebody has asked the job to end. The work ends it, with what it has. */
export class JobCancelled extends Error {
  override readonly name = 'JobCancelled';
}

/** The job is over for this replica: it has its terminal event, or another replica has ended it. Nothing can be emitted. */
export class JobOver extends Error {
  override readonly name = 'JobOver';
}
