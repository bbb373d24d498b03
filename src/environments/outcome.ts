import { EnvironmentError, type Outcome } from './environment.ts';

/** Clients know both by these words, which are older than `reason`. */
const NOT_VALID = 'is not a valid tool';
const INVALID_INPUT = 'Tool input validation error';

/** A failure always says something: of an empty text nobody would know what it is. */
export const NO_WORDS = 'The tool failed and did not say why.';

type Refused = Extract<Outcome, { ok: false }>;

export const unknownTool = (name: string): Refused => ({
  ok: false,
  error: `'${name.slice(0, 200)}' ${NOT_VALID}`,
  reason: 'not_found',
});

export const invalidInput = (fault: string): Refused => ({
  ok: false,
  error: `${INVALID_INPUT}: ${fault}`,
  reason: 'input_validation',
});

/** What the words say where no reason is given. */
export const reasonIn = (error: string): Refused['reason'] => {
  if (error.includes(NOT_VALID)) return 'not_found';
  return error.startsWith(INVALID_INPUT) ? 'input_validation' : undefined;
};

/**
 * The last look at what a call has brought, whatever kind of environment it comes from: JSON would turn a reward that is
 * not a number into `null`, and a trainer would take it for none.
 */
export const checkedOutcome = (outcome: Outcome, tool: string): Outcome => {
  if (!outcome.ok) return outcome;
  const { blocks, reward, finished } = outcome.output;
  const fault =
    reward !== null && !Number.isFinite(reward)
      ? 'a reward that is not a finite number'
      : typeof finished !== 'boolean'
        ? '"finished" that is neither true nor false'
        : Array.isArray(blocks)
          ? undefined
          : 'no list of blocks';
  if (fault === undefined) return outcome;
  throw new EnvironmentError('failed', `The tool ${tool} has answered with ${fault}.`);
};
