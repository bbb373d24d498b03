import { CALL_HABITS } from './call-habits.ts';
import { FAILURE_HABITS } from './failure-habits.ts';
import type { Habit } from './habit.ts';
import { TEXT_HABITS } from './text-habits.ts';

export const HABITS: readonly Habit[] = [...TEXT_HABITS, ...CALL_HABITS, ...FAILURE_HABITS];
