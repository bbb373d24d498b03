import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../../tools/message-of.ts';
import { makeOwnNameKnown } from '../../tools/module/own-name.ts';
import { type ImportModule, importModule } from '../../tools/module/tool-module.ts';
import type { JsonObject } from '../../tools/tool.ts';
import { EnvironmentError } from '../environment.ts';
import { isDefinedReward, type RewardAnswer } from './define-reward.ts';
import { checkedFinished, checkedReward, type Judge, NOTHING, unjudged, type Verdict } from './reward.ts';

/** What modules of operators mean by the name of this package. */
const OWN_ENTRY = new URL('../../index.js', import.meta.url).href;

const metadataOf = (metadata: unknown): JsonObject | null => {
  if (metadata === undefined || metadata === null) return null;
  if (typeof metadata !== 'object' || Array.isArray(metadata)) throw unjudged('"metadata" is not an object.');
  try {
    return JSON.parse(JSON.stringify(metadata)) as JsonObject;
  } catch (error) {
    throw unjudged('"metadata" cannot be written as JSON.', error);
  }
};

const verdictOf = (answer: unknown): Verdict => {
  if (answer === undefined || answer === null) return NOTHING;
  if (typeof answer !== 'object') throw unjudged(`the module gave a ${typeof answer}, not an object.`);
  const { reward, finished, metadata } = answer as RewardAnswer;
  return {
    reward: checkedReward(reward),
    finished: finished === undefined ? undefined : checkedFinished(finished),
    metadata: metadataOf(metadata),
  };
};

/** A JavaScript file of the operator that says what calls are worth. Throws one sentence that names the file. */
export const loadRewardModule = async (path: string, load?: ImportModule): Promise<Judge> => {
  try {
    if (!load) makeOwnNameKnown(OWN_ENTRY);
    const exported = await (load ?? importModule)(`${pathToFileURL(path).href}?v=${statSync(path).mtimeMs}`);
    const [defined, ...more] = [...new Set(Object.values(exported))].filter(isDefinedReward);
    if (!defined) throw new Error('it exports nothing that defineReward has made.');
    if (more.length > 0) throw new Error('it exports more than one reward.');
    const { judge, failures } = defined;
    if (typeof judge !== 'function') throw new Error('defineReward was not given a function.');
    return async (call) => {
      if (call.result.isError && !failures) return { ...NOTHING, finished: false };
      let answer: unknown;
      try {
        answer = await judge(call);
      } catch (error) {
        if (error instanceof EnvironmentError) throw error;
        throw unjudged(messageOf(error), error);
      }
      return verdictOf(answer);
    };
  } catch (error) {
    throw new Error(`The reward of ${path} cannot be used: ${messageOf(error)}`, { cause: error });
  }
};
