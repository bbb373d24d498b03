import type { JsonObject } from '../../tools/tool.ts';
import type { JudgedCall } from './reward.ts';

/** What a reward module may say of a call; nothing at all is no reward. */
export interface RewardAnswer {
  /** Finite. `null`, or absent: none. */
  readonly reward?: number | null;
  /** Whether the episode is over. Absent: it is when the submit tool was called. */
  readonly finished?: boolean;
  /** Beside the result, not for the model. */
  readonly metadata?: JsonObject | null;
}

export interface RewardOptions {
  /** Whether it is also asked about calls whose tool says that it failed. Default false. */
  readonly failures?: boolean;
}

export type RewardFunction = (
  call: JudgedCall,
) => RewardAnswer | null | undefined | Promise<RewardAnswer | null | undefined>;

const MARK = Symbol.for('sluice.reward');

/** A reward of a module, marked so that the gateway finds it among the module's exports. */
export interface DefinedReward {
  readonly judge: RewardFunction;
  readonly failures: boolean;
  readonly [MARK]: true;
}

/** Declares what calls are worth. A module exports what this returns, by any name. */
export const defineReward = (judge: RewardFunction, { failures = false }: RewardOptions = {}): DefinedReward =>
  Object.freeze({ judge, failures, [MARK]: true as const });

export const isDefinedReward = (value: unknown): value is DefinedReward =>
  typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[MARK] === true;
