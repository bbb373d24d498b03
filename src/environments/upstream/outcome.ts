import { objectIn, textIn } from '../../models/json.ts';
import type { Outcome, ToolOutput } from '../environment.ts';
import { NO_WORDS, reasonIn } from '../outcome.ts';
import { blocksIn, objectOrNull, parsed, unusable } from './answers.ts';

const failure = (error: unknown, given: unknown): Outcome => {
  const message = textIn(error) ?? NO_WORDS;
  const reason = given === 'not_found' || given === 'input_validation' ? given : reasonIn(message);
  return { ok: false, error: message, ...(reason && { reason }) };
};

// What cannot be a reward is never guessed at: somebody trains with it.
const rewardIn = (value: unknown): number | null => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw unusable('the reward is not a number');
  return value;
};

const finishedIn = (value: unknown = false): boolean => {
  if (typeof value !== 'boolean') throw unusable('finished is neither true nor false');
  return value;
};

const outputIn = (value: unknown): ToolOutput => {
  const output = objectIn(value);
  if (!output) throw unusable('it has no output');
  return {
    blocks: blocksIn(output.blocks ?? [], 'the blocks of the output'),
    metadata: objectOrNull(output.metadata, 'the metadata of the output'),
    reward: rewardIn(output.reward),
    finished: finishedIn(output.finished),
  };
};

/** The result of a call, with every key and no other. */
export const outcomeIn = (json: string): Outcome => {
  const { ok, output, error, reason } = objectIn(parsed(json)) ?? {};
  if (ok === true) return { ok, output: outputIn(output) };
  if (ok === false) return failure(error, reason);
  throw unusable('it does not say whether the call went well');
};
