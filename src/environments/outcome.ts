import { EnvironmentError, type Outcome } from './environment.ts';

/**
 * The last look at what a call has brought, whatever kind of environment it comes from: JSON would turn a reward that is
 * not a number into `null`, and a trainer would take it for none.
 */
export const checkedOutcome = (outcome: Outcome, tool: string): Outcome => {
  if (!outcome.ok) return outcome;
  const { blocks, reward, finished } = outcome.output;
  const fault =
    reward !== null && !Number.isFinite(reward)
      ? `a reward that is not a finite number`
      : typeof finished !== 'boolean'
        ? '"finished" that is neither true nor false'
        : Array.isArray(blocks)
          ? undefined
          : 'no list of blocks';
  if (fault === undefined) return outcome;
  throw new EnvironmentError('failed', `The tool ${tool} has answered with ${fault}.`);
};
