import { EnvironmentError, type EnvironmentErrorCode } from '../../../src/environments/environment.ts';
import { SessionError, type SessionErrorCode } from '../../../src/environments/session-error.ts';
import { JobError, type JobErrorCode } from '../../../src/jobs/errors.ts';
import { orsProblem } from '../../../src/protocols/ors/problems.ts';

/** A status, and after how many seconds to come back. */
type Fate = readonly [number, string?];

const SESSION: Readonly<Record<SessionErrorCode, Fate>> = {
  unknown: [404],
  gone: [410],
  exists: [400],
  full: [429, '5'],
  setup: [500],
  slow: [503, '5'],
  busy: [429, '1'],
  away: [503, '2'],
};
const ENVIRONMENT: Readonly<Record<EnvironmentErrorCode, Fate>> = {
  invalid_split: [400],
  invalid_index: [400],
  invalid_task: [400],
  unsupported: [400],
  busy: [429, '1'],
  unavailable: [503, '2'],
  gone: [410],
  failed: [500],
};
const JOB: Readonly<Record<JobErrorCode, Fate>> = {
  limit: [429, '1'],
  conflict: [409],
  busy: [503, '1'],
  away: [503, '2'],
  stopping: [503, '1'],
};

const rows = [
  ...Object.entries(SESSION).map(([code, fate]) => [new SessionError(code as SessionErrorCode, 'so'), fate] as const),
  ...Object.entries(ENVIRONMENT).map(
    ([code, fate]) => [new EnvironmentError(code as EnvironmentErrorCode, 'so'), fate] as const,
  ),
  ...Object.entries(JOB).map(([code, fate]) => [new JobError(code as JobErrorCode, 'so'), fate] as const),
].map(([error, fate]) => [`${error.constructor.name} ${error.code}`, error, fate] as const);

describe('what went wrong', () => {
  it.each(rows)('is told in the words of the protocol, and when to come back: %s', (_, error, [status, retryAfter]) => {
    const problem = orsProblem(error);
    expect([problem.status, problem.headers['Retry-After']]).toEqual([status, retryAfter]);
    expect(problem.message).toBe('so');
    expect(problem.cause).toBe(error);
  });

  it('is not told where nobody knows what it was', () => {
    const problem = orsProblem(new Error('password'));
    expect(problem.status).toBe(500);
    expect(problem.message).not.toContain('password');
  });
});
