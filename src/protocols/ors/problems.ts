import { EnvironmentError, type EnvironmentErrorCode } from '../../environments/environment.ts';
import { SessionError, type SessionErrorCode } from '../../environments/session-error.ts';
import { JobError, type JobErrorCode } from '../../jobs/errors.ts';
import { Problem, type ProblemCode, problemOf } from '../problem.ts';

/** A status, and after how many seconds it may be tried again. */
type Row = readonly [ProblemCode, number?];

const SESSION: Readonly<Record<SessionErrorCode, Row>> = {
  unknown: ['NOT_FOUND'],
  gone: ['GONE'],
  exists: ['PROTOCOL_ERROR'],
  full: ['RATE_LIMIT_EXCEEDED', 5],
  setup: ['INTERNAL_ERROR'],
  slow: ['UNAVAILABLE', 5],
  busy: ['RATE_LIMIT_EXCEEDED', 1],
  away: ['UNAVAILABLE', 2],
};

const ENVIRONMENT: Readonly<Record<EnvironmentErrorCode, Row>> = {
  invalid_split: ['PROTOCOL_ERROR'],
  invalid_index: ['PROTOCOL_ERROR'],
  invalid_task: ['PROTOCOL_ERROR'],
  unsupported: ['PROTOCOL_ERROR'],
  busy: ['RATE_LIMIT_EXCEEDED', 1],
  unavailable: ['UNAVAILABLE', 2],
  gone: ['GONE'],
  failed: ['INTERNAL_ERROR'],
};

const JOB: Readonly<Record<JobErrorCode, Row>> = {
  limit: ['RATE_LIMIT_EXCEEDED', 1],
  conflict: ['CONFLICT'],
  busy: ['UNAVAILABLE', 1],
  away: ['UNAVAILABLE', 2],
  stopping: ['UNAVAILABLE', 1],
};

const rowOf = (error: unknown): Row | undefined => {
  if (error instanceof SessionError) return SESSION[error.code];
  if (error instanceof EnvironmentError) return ENVIRONMENT[error.code];
  return error instanceof JobError ? JOB[error.code] : undefined;
};

/** What an error means in this protocol. */
export const orsProblem = (error: unknown): Problem => {
  const row = rowOf(error);
  if (!row) return problemOf(error);
  const [code, retryAfter] = row;
  const headers = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) };
  return new Problem(code, (error as Error).message, { headers, cause: error });
};
