import type { DefinedTool, TOOL_MARK } from '../../tools/module/define-tool.ts';
import type { JsonObject, Schema, ToolResult } from '../../tools/tool.ts';
import type { GivenBlock } from '../blocks.ts';
import type { Split } from '../environment.ts';
import type { GivenOutput } from '../output.ts';

/** What is known of an episode before and while it is set up. */
export interface EpisodeStart<Task extends object = JsonObject> {
  readonly sid: string;
  readonly principal: string;
  /** A copy of its own: what an episode does to it, no other one sees. */
  readonly task: Task;
  /** Where the task comes from; absent if the client has given it. */
  readonly split?: string;
  readonly index?: number;
  readonly secrets: Readonly<Record<string, string>>;
  /** Aborted when nobody waits any more for what is being done: each setup, prompt and call has its own. */
  readonly signal: AbortSignal;
}

export interface EpisodeContext<Task extends object = JsonObject, State = void> extends EpisodeStart<Task> {
  /** What the setup has given: the same thing for all calls of the episode. */
  readonly state: State;
}

/** The teardown runs to its end whatever happens, so that there is no signal; without a state if the setup has failed. */
export type EpisodeEnd<Task extends object = JsonObject, State = void> = Omit<
  EpisodeContext<Task, State | undefined>,
  'signal'
>;

/** Text, what `fail` has made, or an output. */
export type EnvironmentAnswer = string | ToolResult | GivenOutput;

export interface EnvironmentTool<Task extends object = JsonObject, State = void> {
  /** Letters, digits, `_` and `-`; at most 64. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input, which is always an object. What does not fit it never reaches `run`. */
  readonly input?: Schema;
  /** 0: none. What the settings say if absent. */
  readonly timeoutSeconds?: number;
  /** False: only those who have an episode see it. Default true. */
  readonly shared?: boolean;
  /** What it throws is a fault; what it wants a model to read about a failure it gives back with `fail`. */
  run(input: JsonObject, episode: EpisodeContext<Task, State>): EnvironmentAnswer | Promise<EnvironmentAnswer>;
  /** Tells the compiler a tool that `defineTool` has made from one that is written down here. */
  readonly [TOOL_MARK]?: undefined;
}

/** Tasks that are made or fetched one by one, when somebody asks for them. */
export interface IndexedTasks<Task extends object = JsonObject> {
  count(split: string): number | Promise<number>;
  /** From 0. The same index is always the same task. */
  get(split: string, index: number): Task | Promise<Task>;
  /** Whether all tasks of a split may be asked for at once. If absent: as long as there are at most 10,000. */
  readonly list?: boolean;
}

/** All tasks of a split, or what gives them; it is asked once. */
export type SplitTasks<Task extends object = JsonObject> =
  | readonly Task[]
  | (() => readonly Task[] | Promise<readonly Task[]>);

export type GivenTasks<Task extends object = JsonObject> =
  | IndexedTasks<Task>
  | Readonly<Record<string, SplitTasks<Task>>>;

export type GivenTool<Task extends object = JsonObject, State = void> = EnvironmentTool<Task, State> | DefinedTool;

type Awaitable<T> = T | Promise<T>;

/** For the compiler's sake `setup` is best written before whatever uses the state. */
export interface EnvironmentDefinition<Task extends object = JsonObject, State = void> {
  /** Letters, digits, `.`, `_` and `-`; at most 64. Case does not matter. */
  readonly name: string;
  /** A bare name is of the type that it names, otherwise of the type `validation`. */
  readonly splits: readonly (string | Split)[];
  readonly tasks: GivenTasks<Task>;
  /** Judges a task that a client gives itself. */
  readonly taskSchema?: Schema;
  /** Judges it further: one sentence if it cannot be used. */
  checkTask?(task: JsonObject): Awaitable<string | undefined>;
  /** Once per episode, before everything else. Gives the state. */
  setup?(episode: EpisodeStart<Task>): Awaitable<State>;
  readonly tools?: readonly GivenTool<Task, State>[];
  /** More tools, for this task only. Once per episode, after the setup. */
  taskTools?(episode: EpisodeContext<Task, State>): Awaitable<readonly GivenTool<Task, State>[]>;
  /** What a model reads first. It may be asked for several times. */
  prompt(episode: EpisodeContext<Task, State>): Awaitable<GivenBlock | readonly GivenBlock[]>;
  /** Once per episode, also if the setup has failed halfway. */
  teardown?(episode: EpisodeEnd<Task, State>): Awaitable<void>;
}

const MARK = Symbol.for('sluice.environment');

/** An environment of a module, marked so that the gateway finds it among the module's exports. */
export type DefinedEnvironment = EnvironmentDefinition<JsonObject, unknown> & { readonly [MARK]: true };

/** Declares an environment. A module exports what this returns, by any name or in a list. */
export const defineEnvironment = <Task extends object = JsonObject, State = void>(
  definition: EnvironmentDefinition<Task, State>,
): DefinedEnvironment => Object.freeze({ ...definition, [MARK]: true as const }) as unknown as DefinedEnvironment;

export const isDefinedEnvironment = (value: unknown): value is DefinedEnvironment =>
  typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[MARK] === true;
