import { objectIn, textIn } from '../../models/json.ts';
import { messageOf } from '../../tools/message-of.ts';
import type { Outcome, ToolOutput } from '../environment.ts';
import { NO_WORDS, reasonIn } from '../outcome.ts';
import { finishedOf, metadataOf, rewardOf } from '../output.ts';
import { blocksIn, parsed, unusable } from './answers.ts';

const failure = (error: unknown, given: unknown): Outcome => {
  const message = textIn(error) ?? NO_WORDS;
  const reason = given === 'not_found' || given === 'input_validation' ? given : reasonIn(message);
  return { ok: false, error: message, ...(reason && { reason }) };
};

const outputIn = (value: unknown): ToolOutput => {
  const output = objectIn(value);
  if (!output) throw unusable('it has no output');
  const blocks = blocksIn(output.blocks ?? [], 'the blocks of the output');
  try {
    const { metadata, reward, finished = false } = output;
    return { blocks, metadata: metadataOf(metadata), reward: rewardOf(reward), finished: finishedOf(finished) };
  } catch (error) {
    throw unusable(messageOf(error));
  }
};

/** The result of a call, with every key and no other. */
export const outcomeIn = (json: string): Outcome => {
  const { ok, output, error, reason } = objectIn(parsed(json)) ?? {};
  if (ok === true) return { ok, output: outputIn(output) };
  if (ok === false) return failure(error, reason);
  throw unusable('it does not say whether the call went well');
};
