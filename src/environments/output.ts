import { messageOf } from '../tools/message-of.ts';
import type { JsonObject } from '../tools/tool.ts';
import { blocksOf, type GivenBlock } from './blocks.ts';
import { EnvironmentError, type ToolOutput } from './environment.ts';
import { isObject, kindOf, notJson } from './plain-data.ts';

/** What a call has given, as somebody writes it. Either `text` or `blocks`, or neither. */
export interface GivenOutput {
  readonly text?: string;
  readonly blocks?: readonly GivenBlock[];
  /** Left out or null: no reward, which is not the same as 0. */
  readonly reward?: number | null;
  /** The episode is over. Default false. */
  readonly finished?: boolean;
  /** For whoever trains; a model does not see it. */
  readonly metadata?: JsonObject | null;
}

const KEYS: readonly string[] = ['text', 'blocks', 'reward', 'finished', 'metadata'] satisfies (keyof GivenOutput)[];

// Each throws in words without a full stop. What is not quite right is refused: a reward that was quietly turned into
// another one would be found in the curves of a training run, if at all.

/** Absent is none. */
export const rewardOf = (reward: unknown): number | null => {
  if (reward === undefined || reward === null) return null;
  if (typeof reward === 'number' && Number.isFinite(reward)) return reward;
  throw new Error(`reward must be a finite number or null, not ${kindOf(reward)}`);
};

export const finishedOf = (finished: unknown): boolean => {
  if (typeof finished === 'boolean') return finished;
  throw new Error(`finished must be true or false, not ${kindOf(finished)}`);
};

/** Absent is null. */
export const metadataOf = (metadata: unknown): JsonObject | null => {
  if (metadata === undefined || metadata === null) return null;
  if (!isObject(metadata)) throw new Error(`metadata must be an object or null, not ${kindOf(metadata)}`);
  const fault = notJson(metadata, 'metadata');
  if (fault !== undefined) throw new Error(fault);
  return metadata;
};

const given = (answer: JsonObject): ToolOutput => {
  const { text, blocks, reward, finished = false, metadata } = answer;
  const extra = Object.keys(answer).find((key) => !KEYS.includes(key));
  if (extra !== undefined) throw new Error(`"${extra.slice(0, 100)}" is not known: it may have ${KEYS.join(', ')}`);
  if (text !== undefined && blocks !== undefined) throw new Error('it may have text or blocks, not both');
  if (text !== undefined && typeof text !== 'string') throw new Error(`text must be a string, not ${kindOf(text)}`);
  if (blocks !== undefined && !Array.isArray(blocks)) throw new Error(`blocks must be a list, not ${kindOf(blocks)}`);
  return {
    blocks: text === undefined ? blocksOf(blocks ?? [], 'blocks') : blocksOf(text, 'text'),
    metadata: metadataOf(metadata),
    reward: rewardOf(reward),
    finished: finishedOf(finished),
  };
};

/** What a call has given, with every key that clients ask for. */
export const outputOf = (tool: string, answer: unknown): ToolOutput => {
  try {
    if (typeof answer === 'string') return given({ text: answer });
    if (!isObject(answer)) throw new Error(`it must be text or an object, not ${kindOf(answer)}`);
    return given(answer);
  } catch (error) {
    const reason = messageOf(error);
    throw new EnvironmentError('failed', `The answer of the tool ${tool} cannot be used: ${reason}.`);
  }
};
