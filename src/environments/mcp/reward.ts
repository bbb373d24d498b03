import type { McpEnvironmentSettings } from '../../config/structures.ts';
import { Expression, type Variables } from '../../manifests/expression.ts';
import { messageOf } from '../../tools/message-of.ts';
import type { JsonObject, ToolResult } from '../../tools/tool.ts';
import { EnvironmentError } from '../environment.ts';
import { finishedOf, rewardOf } from '../output.ts';
import { textOfResult } from '../tool-result.ts';

/** A call that has been carried out. */
export interface JudgedCall {
  readonly tool: string;
  readonly input: JsonObject;
  readonly result: ToolResult;
  readonly task: JsonObject;
  /** How many calls of this episode have been carried out, with this one. */
  readonly calls: number;
  /** Kept from call to call as long as the episode lasts. */
  readonly state: Record<string, unknown>;
  readonly signal: AbortSignal;
}

export interface Verdict {
  /** `null` is none. */
  readonly reward: number | null;
  /** Undefined: as without a rule. */
  readonly finished: boolean | undefined;
  readonly metadata: JsonObject | null;
}

/** What calls are worth. A call that has failed is only judged by who asks for it. Throws an `EnvironmentError`. */
export type Judge = (call: JudgedCall) => Promise<Verdict>;

export const NOTHING: Verdict = { reward: null, finished: undefined, metadata: null };

/** Said of a rule that gives something that cannot be used, or nothing at all. */
export const unjudged = (reason: string, cause?: unknown): EnvironmentError =>
  new EnvironmentError('failed', `The reward of this call could not be found: ${reason}`, cause);

/** What a rule has given, if it can be used. */
export const judged = <T>(check: () => T): T => {
  try {
    return check();
  } catch (error) {
    throw unjudged(`${messageOf(error)}.`);
  }
};

const VARIABLES: Variables = {
  tool: 'string',
  input: 'map',
  output: 'string',
  structured: 'dyn',
  task: 'map',
  failed: 'bool',
  calls: 'int',
  // Both sides of a condition must be of one type, and `null` is of none that a number is.
  none: 'dyn',
};

const expressionOf = (
  setting: 'reward' | 'finished',
  text: string | undefined,
  types: readonly string[],
): Expression | undefined => {
  if (text === undefined) return undefined;
  try {
    const expression = new Expression(text, VARIABLES);
    if (types.includes(expression.type)) return expression;
    throw new Error(`The expression gives a ${expression.type}.`);
  } catch (error) {
    throw new Error(`${setting}: ${(error as Error).message}`);
  }
};

const evaluated = (expression: Expression, context: Readonly<Record<string, unknown>>): unknown => {
  try {
    return expression.value(context);
  } catch (error) {
    throw unjudged((error as Error).message, error);
  }
};

/** By expressions of the settings. Throws one sentence. */
export const expressionJudge = ({ reward, finished }: Pick<McpEnvironmentSettings, 'reward' | 'finished'>): Judge => {
  const rewardRule = expressionOf('reward', reward, ['int', 'double', 'null', 'dyn']);
  const finishedRule = expressionOf('finished', finished, ['bool', 'dyn']);
  return async ({ tool, input, result, task, calls }) => {
    const failed = result.isError;
    // A rule that does not speak of failures was not made for them: it would reward a call for its input alone.
    const asked = (rule: Expression | undefined): rule is Expression =>
      rule !== undefined && (!failed || rule.mentions('failed'));
    const context = {
      ...{ tool, input, task, failed, none: null },
      output: textOfResult(result),
      structured: result.structured ?? null,
      calls: BigInt(calls),
    };
    const judgedBy = <T>(rule: Expression, of: (value: unknown) => T): T => {
      const value = evaluated(rule, context);
      return judged(() => of(value));
    };
    return {
      reward: asked(rewardRule) ? judgedBy(rewardRule, rewardOf) : null,
      finished: asked(finishedRule) ? judgedBy(finishedRule, finishedOf) : failed ? false : undefined,
      metadata: null,
    };
  };
};
