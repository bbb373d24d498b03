import { setImmediate as turn } from 'node:timers/promises';
import type { JsonObject } from '../../tools/tool.ts';
import { EnvironmentError, invalidIndex, invalidSplit, MAX_LISTED, notListed, type Split } from '../environment.ts';
import { isObject, kindOf, notJson } from '../plain-data.ts';
import type { GivenTasks, IndexedTasks, SplitTasks } from './define-environment.ts';

/** So many tasks are asked for before others have their turn. */
const BATCH = 100;

const isIndexed = (given: GivenTasks): given is IndexedTasks =>
  typeof (given as IndexedTasks).count === 'function' && typeof (given as IndexedTasks).get === 'function';

/** The list of a split, asked for once; again only if that has failed. */
const listOf = (given: SplitTasks): (() => Promise<readonly JsonObject[]>) => {
  let asked: Promise<readonly JsonObject[]> | undefined;
  const ask = async (): Promise<readonly JsonObject[]> => {
    const list: unknown = typeof given === 'function' ? await given() : given;
    if (Array.isArray(list)) return list as readonly JsonObject[];
    throw new EnvironmentError('failed', `The tasks of a split must be a list, not ${kindOf(list)}.`);
  };
  return () => {
    asked ??= ask().catch((error: unknown) => {
      asked = undefined;
      throw error;
    });
    return asked;
  };
};

const indexed = (lists: Readonly<Record<string, SplitTasks>>): IndexedTasks => {
  const loaded = new Map(Object.entries(lists).map(([split, list]) => [split, listOf(list)]));
  const of = async (split: string): Promise<readonly JsonObject[]> => (await loaded.get(split)?.()) ?? [];
  return {
    list: true,
    count: async (split) => (await of(split)).length,
    get: async (split, index) => (await of(split))[index] as JsonObject,
  };
};

/** Throws one sentence if the tasks do not go with the splits. */
const checked = (given: GivenTasks, splits: readonly Split[], environment: string): IndexedTasks => {
  if (typeof given === 'object' && given !== null && isIndexed(given)) {
    const { list } = given;
    if (list === undefined || typeof list === 'boolean') return given;
    throw new Error(`list of the tasks of ${environment} must be true or false, not ${kindOf(list)}.`);
  }
  if (!isObject(given)) throw new Error(`The tasks of ${environment} must be { count, get }, or lists by split.`);
  const lists: Readonly<Record<string, unknown>> = given;
  const names = splits.map(({ name }) => name);
  const without = names.find((name) => !Object.hasOwn(lists, name));
  if (without !== undefined) throw new Error(`The split ${without} of ${environment} has no tasks.`);
  for (const [name, list] of Object.entries(lists)) {
    if (!names.includes(name)) throw new Error(`${environment} has tasks for ${name}, which is not one of its splits.`);
    if (!Array.isArray(list) && typeof list !== 'function') {
      throw new Error(`The tasks of ${name} must be a list or a function, not ${kindOf(list)}.`);
    }
  }
  return indexed(lists as Readonly<Record<string, SplitTasks>>);
};

/** The tasks of an environment, by split and index. */
export class Tasks {
  private readonly source: IndexedTasks;
  private readonly splits: ReadonlySet<string>;

  /** Throws one sentence if they cannot be used. */
  constructor(given: GivenTasks, splits: readonly Split[], environment: string) {
    this.source = checked(given, splits, environment);
    this.splits = new Set(splits.map(({ name }) => name));
  }

  async count(split: string): Promise<number> {
    if (!this.splits.has(split)) throw invalidSplit();
    const count: unknown = await this.source.count(split);
    if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
    throw new EnvironmentError('failed', `The number of tasks of the split ${split} is ${kindOf(count)}.`);
  }

  async check(split: string, index: number): Promise<void> {
    const count = await this.count(split);
    if (!Number.isSafeInteger(index) || index < 0 || index >= count) throw invalidIndex();
  }

  async task(split: string, index: number): Promise<JsonObject> {
    await this.check(split, index);
    return this.get(split, index);
  }

  async all(split: string): Promise<readonly JsonObject[]> {
    const count = await this.count(split);
    if (!(this.source.list ?? count <= MAX_LISTED)) throw notListed();
    return this.range(split, 0, count);
  }

  async range(split: string, start: number, stop: number): Promise<readonly JsonObject[]> {
    if (!this.splits.has(split)) throw invalidSplit();
    const tasks: JsonObject[] = [];
    for (let at = start; at < stop; at += BATCH) {
      if (at > start) await turn();
      const batch = Array.from({ length: Math.min(BATCH, stop - at) }, (_, i) => this.get(split, at + i));
      tasks.push(...(await Promise.all(batch)));
    }
    return tasks;
  }

  private async get(split: string, index: number): Promise<JsonObject> {
    const task: unknown = await this.source.get(split, index);
    const fault = isObject(task) ? notJson(task, 'task') : `it is ${kindOf(task)}, not an object`;
    if (fault === undefined) return task as JsonObject;
    throw new EnvironmentError('failed', `The task ${index} of the split ${split} cannot be used: ${fault}.`);
  }
}
