import { SPLIT_TYPES, type Split, type SplitType } from './environment.ts';

export const isSplitType = (text: unknown): text is SplitType => (SPLIT_TYPES as readonly unknown[]).includes(text);

/** A split that only has a name. */
export const splitNamed = (name: string): Split => ({ name, type: isSplitType(name) ? name : 'validation' });
