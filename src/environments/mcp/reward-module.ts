import { messageOf } from '../../tools/message-of.ts';
import { exportsOf, type ImportModule } from '../../tools/module/tool-module.ts';
import { EnvironmentError } from '../environment.ts';
import { finishedOf, metadataOf, rewardOf } from '../output.ts';
import { isObject, kindOf } from '../plain-data.ts';
import { isDefinedReward, type RewardAnswer } from './define-reward.ts';
import { type Judge, judged, NOTHING, unjudged, type Verdict } from './reward.ts';

const verdictOf = (answer: unknown): Verdict => {
  if (answer === undefined || answer === null) return NOTHING;
  if (!isObject(answer)) throw unjudged(`the module gave ${kindOf(answer)}, not an object.`);
  const { reward, finished, metadata } = answer as RewardAnswer;
  return judged(() => ({
    reward: rewardOf(reward),
    finished: finished === undefined ? undefined : finishedOf(finished),
    metadata: metadataOf(metadata),
  }));
};

/** A JavaScript file of the operator that says what calls are worth. Throws one sentence that names the file. */
export const loadRewardModule = async (path: string, load?: ImportModule): Promise<Judge> => {
  try {
    const exported = await exportsOf(path, load);
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
