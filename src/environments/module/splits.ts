import { SPLIT_TYPES, type Split } from '../environment.ts';
import { isObject } from '../plain-data.ts';
import { isSplitType, splitNamed } from '../split.ts';

const splitOf = (given: unknown): Split => {
  const { name, type } = typeof given === 'string' ? { name: given, type: undefined } : isObject(given) ? given : {};
  if (typeof name !== 'string' || name === '') throw new Error('A split is a name, or { name, type }.');
  if (type === undefined && typeof given === 'string') return splitNamed(name);
  if (!isSplitType(type)) throw new Error(`The type of the split ${name} must be one of ${SPLIT_TYPES.join(', ')}.`);
  return { name, type };
};

/** Throws one sentence if they are not. */
export const splitsOf = (given: unknown, environment: string): readonly Split[] => {
  if (!Array.isArray(given) || given.length === 0) throw new Error(`${environment} has no splits.`);
  const splits = given.map(splitOf);
  const twice = splits.find(({ name }, i) => splits.findIndex((other) => other.name === name) !== i);
  if (twice) throw new Error(`${environment} has two splits called ${twice.name}.`);
  return splits;
};
