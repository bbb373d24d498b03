import { messageOf } from '../../tools/message-of.ts';
import type { JsonObject } from '../../tools/tool.ts';
import { blocksOf, text } from '../blocks.ts';
import { type Block, EnvironmentError } from '../environment.ts';

const PATH = '[A-Za-z_][A-Za-z0-9_-]*(?:\\.[A-Za-z0-9_-]+)*';
/** Not every brace: prompts like to show JSON. A name in two pairs of braces is left in one. */
const PLACE = new RegExp(`\\{\\{(${PATH})\\}\\}|\\{(${PATH})\\}`, 'g');

const isFields = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null;

const fieldOf = (task: JsonObject, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, part) => (isFields(value) && Object.hasOwn(value, part) ? value[part] : undefined), task);

const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const unusable = (reason: string): EnvironmentError => new EnvironmentError('invalid_task', reason);

const filled = (template: string, task: JsonObject): string =>
  template.replace(PLACE, (_, kept: string | undefined, path: string) => {
    if (kept !== undefined) return `{${kept}}`;
    const value = fieldOf(task, path);
    if (value === undefined || value === null) {
      throw unusable(`The task has no field "${path}", which the prompt needs.`);
    }
    return written(value);
  });

/** The prompt of a task: by the template, or what the task itself holds. Throws an `EnvironmentError`. */
export const promptOf = (task: JsonObject, template: string | undefined): readonly Block[] => {
  if (template !== undefined) return [text(filled(template, task))];
  const { prompt } = task;
  if (prompt === undefined || prompt === null || (Array.isArray(prompt) && prompt.length === 0)) {
    throw unusable('The task has no field "prompt", and the environment has none for all tasks.');
  }
  try {
    return blocksOf(prompt, 'prompt');
  } catch (error) {
    throw unusable(`The task cannot be used: ${messageOf(error)}.`);
  }
};
