import { objectIn, parseJson } from '../../models/json.ts';
import type { JsonObject } from '../../tools/tool.ts';
import { type Block, EnvironmentError, type Split, type ToolSpec } from '../environment.ts';
import { isSplitType, splitNamed } from '../split.ts';

// What an upstream answers, in our own words, or a sentence that says why it cannot be used.

export const unusable = (what: string): EnvironmentError =>
  new EnvironmentError('failed', `The upstream's answer cannot be used: ${what}.`);

const object = (value: unknown, what: string): JsonObject => {
  const found = objectIn(value);
  if (!found) throw unusable(`${what} is not an object`);
  return found;
};

const list = (value: unknown, what: string): readonly unknown[] => {
  if (!Array.isArray(value)) throw unusable(`${what} is not a list`);
  return value;
};

const text = (value: unknown, what: string): string => {
  if (typeof value !== 'string') throw unusable(`${what} is not a text`);
  return value;
};

const count = (value: unknown, what: string): number => {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw unusable(`${what} is not a count`);
  return value;
};

/** Absent is null. */
const objectOrNull = (value: unknown, what: string): JsonObject | null =>
  value === undefined || value === null ? null : object(value, what);

export const parsed = (json: string): unknown => {
  const value = parseJson(json);
  if (value === undefined) throw unusable('it is not JSON');
  return value;
};

/** Written as a bare name, or of a type that nobody knows, it is judged by its name. */
const splitIn = (value: unknown): Split => {
  const { name: given, type } = typeof value === 'string' ? { name: value, type: value } : object(value, 'a split');
  const name = text(given, 'the name of a split');
  return isSplitType(type) ? { name, type } : splitNamed(name);
};

export const splitsIn = (json: string): readonly Split[] => list(parsed(json), 'the list of splits').map(splitIn);

const toolIn = (value: unknown): ToolSpec => {
  const { name, description, input_schema: schema } = object(value, 'a tool');
  return {
    name: text(name, 'the name of a tool'),
    description: text(description ?? '', 'the description of a tool'),
    input_schema: objectOrNull(schema, 'the input_schema of a tool'),
  };
};

export const toolsIn = (json: string): readonly ToolSpec[] =>
  list(object(parsed(json), 'it').tools, 'tools').map(toolIn);

export const tasksIn = (json: string): readonly JsonObject[] =>
  list(object(parsed(json), 'it').tasks, 'tasks').map((task) => object(task, 'a task'));

export const countIn = (json: string): number => count(object(parsed(json), 'it').num_tasks, 'num_tasks');

export const taskIn = (json: string): JsonObject => object(object(parsed(json), 'it').task, 'the task');

/** What nobody here knows becomes a text that says so: left out, it would be missed by nobody. */
const blockIn = (value: unknown): Block => {
  const block = object(value, 'a block');
  const detail = objectOrNull(block.detail, 'the detail of a block');
  if (block.type === 'text') return { text: text(block.text, 'the text of a block'), detail, type: 'text' };
  if (block.type === 'image') {
    const data = text(block.data, 'the data of a block');
    return { data, mimeType: text(block.mimeType, 'the mimeType of a block'), detail, type: 'image' };
  }
  const type = typeof block.type === 'string' ? block.type.slice(0, 64) : 'no type';
  return { text: `[a block of a type that is not known here: ${type}]`, detail, type: 'text' };
};

export const blocksIn = (value: unknown, what: string): readonly Block[] => list(value, what).map(blockIn);

export const promptIn = (json: string): readonly Block[] => blocksIn(parsed(json), 'the prompt');
