import type { JsonObject } from '../../tools/tool.ts';
import { type Block, EnvironmentError } from '../environment.ts';
import { textBlock } from './blocks.ts';

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

const blockOf = (part: unknown): Block => {
  if (typeof part === 'string') return textBlock(part);
  const { type, text, data, mimeType, detail } = isFields(part) ? part : {};
  const more = isFields(detail) && !Array.isArray(detail) ? detail : null;
  if (type === 'text' && typeof text === 'string') return { text, detail: more, type };
  if (type === 'image' && typeof data === 'string' && typeof mimeType === 'string') {
    return { data, mimeType, detail: more, type };
  }
  throw unusable('The field "prompt" of the task has a part that is neither a text nor an image.');
};

/** The prompt of a task: by the template, or what the task itself holds. Throws an `EnvironmentError`. */
export const promptOf = (task: JsonObject, template: string | undefined): readonly Block[] => {
  if (template !== undefined) return [textBlock(filled(template, task))];
  const { prompt } = task;
  if (typeof prompt === 'string') return [textBlock(prompt)];
  if (Array.isArray(prompt) && prompt.length > 0) return prompt.map(blockOf);
  throw unusable('The task has no field "prompt" with a text or a list of blocks, and the environment has no prompt.');
};
