import type { ModelEvent } from '../../src/models/model.ts';
import type { ModelErrorCode } from '../../src/models/model-error.ts';
import { DONE, delta } from '../support/model-backend.ts';
import type { Collected } from './collect.ts';

/** What a backend sends, and what has to come out whatever its habits. */
export interface Habit {
  readonly name: string;
  readonly body: string | Buffer;
  /** Without start and finish, unless `start` is asked for. Ids that we made are `own`. */
  readonly events?: readonly unknown[];
  /** Default `stop`. */
  readonly finish?: unknown;
  readonly start?: unknown;
  readonly error?: { readonly code: ModelErrorCode; readonly message?: RegExp; readonly status?: number };
}

export const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm-1' };
export const text = (delta: string): ModelEvent => ({ type: 'text', delta });
export const reasoning = (delta: string): ModelEvent => ({ type: 'reasoning', delta });
export const HELLO = [text('Hel'), text('lo')];

/** One call as it comes out, its arguments in these pieces. */
export const call = (index: number, id: string, name: string, ...pieces: string[]): ModelEvent[] => [
  { type: 'tool_call', index, id, name },
  ...pieces.map((delta): ModelEvent => ({ type: 'tool_arguments', index, delta })),
];
export const end = (index: number, id: string, name: string, all: string): ModelEvent => ({
  type: 'tool_call_end',
  ...{ index, id, name, arguments: all },
});
export const one = (id: string, ...pieces: string[]): ModelEvent[] => [
  ...call(0, id, 'add', ...pieces),
  end(0, id, 'add', pieces.join('')),
];

export const tools = (...fragments: unknown[]): string => delta({ tool_calls: fragments });
export const piece = (fields: object, name?: string, args?: unknown): unknown => ({
  ...fields,
  type: 'function',
  function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) },
});
export const closing = (reason = 'tool_calls'): string => delta({}, reason) + DONE;
export const hello = delta({ role: 'assistant', content: '' }) + delta({ content: 'Hel' }) + delta({ content: 'lo' });
export const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
export const usage = { type: 'usage', input: 3, output: 2, total: 5 };

/** Ids that we made differ; they all begin alike. */
const withoutOwnIds = (events: readonly ModelEvent[]): unknown =>
  JSON.parse(JSON.stringify(events).replaceAll(/own-\d+|call_[\da-f-]{36}/g, 'own'));

export const expectHabit = (habit: Habit, { events, error }: Collected): void => {
  const [start] = events;
  const last = events.at(-1);
  if (habit.error) {
    expect(error).toMatchObject({
      code: habit.error.code,
      ...(habit.error.message && { message: expect.stringMatching(habit.error.message) }),
      ...(habit.error.status && { status: habit.error.status }),
    });
    expect(last?.type).not.toBe('finish');
    expect(withoutOwnIds(events.slice(1))).toEqual(habit.events ?? []);
    return;
  }
  expect(error).toBeUndefined();
  expect(start?.type).toBe('start');
  if (habit.start) expect(start).toEqual(habit.start);
  expect(withoutOwnIds(events.slice(1, -1))).toEqual(habit.events);
  const { finish = 'stop' } = habit;
  expect(last).toEqual(typeof finish === 'string' ? { type: 'finish', reason: finish, model: 'm-1' } : finish);
};
