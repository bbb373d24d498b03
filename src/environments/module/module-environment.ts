import { ENVIRONMENT_NAME } from '../../config/structures.ts';
import { SchemaCheck } from '../../tools/schema-check.ts';
import type { JsonObject } from '../../tools/tool.ts';
import {
  type Environment,
  EnvironmentError,
  type Episode,
  type EpisodeRequest,
  type Split,
  type TaskChoice,
  type ToolSpec,
} from '../environment.ts';
import { kindOf } from '../plain-data.ts';
import { untilAborted } from '../until-aborted.ts';
import type { DefinedEnvironment } from './define-environment.ts';
import { ModuleEpisode } from './module-episode.ts';
import { splitsOf } from './splits.ts';
import { Tasks } from './tasks.ts';
import { Toolset } from './toolset.ts';

const FUNCTIONS = ['checkTask', 'setup', 'taskTools', 'prompt', 'teardown'] as const;
const KEYS: readonly string[] = ['name', 'splits', 'tasks', 'taskSchema', 'tools', ...FUNCTIONS];

/** Throws one sentence if something is wrong that the compiler would have found. */
const checked = (definition: DefinedEnvironment): DefinedEnvironment => {
  const { name, prompt, tools, taskTools } = definition;
  if (typeof name !== 'string' || !ENVIRONMENT_NAME.test(name)) {
    const wrong = typeof name === 'string' ? JSON.stringify(name) : kindOf(name);
    throw new Error(`An environment's name has letters, digits, ".", "_" and "-", not ${wrong}.`);
  }
  const extra = Object.keys(definition).find((key) => !KEYS.includes(key));
  if (extra !== undefined) throw new Error(`${name} has ${extra}, which is not known.`);
  for (const key of FUNCTIONS) {
    const value: unknown = definition[key];
    if (value !== undefined && typeof value !== 'function') {
      throw new Error(`${key} of ${name} must be a function, not ${kindOf(value)}.`);
    }
  }
  if (prompt === undefined) throw new Error(`${name} has no function "prompt".`);
  if (tools === undefined && taskTools === undefined) throw new Error(`${name} has no tools.`);
  return definition;
};

export interface ModuleEnvironmentOptions {
  /** In the place of the one that the definition gives. */
  readonly name?: string;
  /** A sentence for the log. */
  readonly warn?: (message: string) => void;
}

/** What `defineEnvironment` has made, as the gateway knows environments. */
export class ModuleEnvironment implements Environment {
  readonly name: string;
  readonly kind = 'module';
  private readonly definition: DefinedEnvironment;
  private readonly splitList: readonly Split[];
  private readonly source: Tasks;
  private readonly toolset: Toolset;
  private readonly taskCheck: SchemaCheck | undefined;
  private readonly warn: (message: string) => void;

  /** Throws one sentence if the definition cannot be used. */
  constructor(given: DefinedEnvironment, { name = given.name, warn = () => {} }: ModuleEnvironmentOptions = {}) {
    const definition = checked({ ...given, name });
    this.name = name.toLowerCase();
    this.definition = definition;
    this.warn = warn;
    this.splitList = splitsOf(definition.splits, name);
    this.source = new Tasks(definition.tasks, this.splitList, name);
    this.toolset = Toolset.of(definition.tools ?? []);
    if (this.toolset.size === 0 && !definition.taskTools) throw new Error(`${name} has no tools.`);
    this.taskCheck = definition.taskSchema && new SchemaCheck(definition.taskSchema);
  }

  async splits(): Promise<readonly Split[]> {
    return this.splitList;
  }

  async tools(): Promise<readonly ToolSpec[]> {
    return this.toolset.sharedSpecs();
  }

  tasks(split: string): Promise<readonly JsonObject[]> {
    return this.source.all(split);
  }

  count(split: string): Promise<number> {
    return this.source.count(split);
  }

  task(split: string, index: number): Promise<JsonObject> {
    return this.source.task(split, index);
  }

  range(split: string, start: number, stop: number): Promise<readonly JsonObject[]> {
    return this.source.range(split, start, stop);
  }

  async check(choice: TaskChoice): Promise<void> {
    if ('split' in choice) return this.source.check(choice.split, choice.index);
    const { checkTask } = this.definition;
    const fault: unknown = this.taskCheck?.fault(choice.task) ?? (await checkTask?.call(this.definition, choice.task));
    if (fault === undefined) return;
    if (typeof fault === 'string') throw new EnvironmentError('invalid_task', `The task cannot be used: ${fault}`);
    throw new EnvironmentError(
      'failed',
      `checkTask of ${this.name} must give a sentence or nothing, not ${kindOf(fault)}.`,
    );
  }

  async open(request: EpisodeRequest, signal: AbortSignal): Promise<Episode> {
    const task = await untilAborted(signal, () => this.chosen(request.choice));
    const { definition, toolset, warn } = this;
    return ModuleEpisode.open({ definition, toolset, request, task: structuredClone(task), warn }, signal);
  }

  async close(): Promise<void> {}

  private async chosen(choice: TaskChoice): Promise<JsonObject> {
    if ('split' in choice) return this.task(choice.split, choice.index);
    await this.check(choice);
    return choice.task;
  }
}
