import type { JsonObject } from '../tools/tool.ts';

/** What a prompt and the output of a tool are made of, with every key that clients ask for. */
export type Block =
  | { readonly text: string; readonly detail: JsonObject | null; readonly type: 'text' }
  /** `data` is base64. */
  | { readonly data: string; readonly mimeType: string; readonly detail: JsonObject | null; readonly type: 'image' };

/** Exactly these keys: clients fall over one more or one less. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonObject | null;
}

export const SPLIT_TYPES = ['train', 'validation', 'test'] as const;
export type SplitType = (typeof SPLIT_TYPES)[number];

export interface Split {
  readonly name: string;
  readonly type: SplitType;
}

export interface ToolOutput {
  readonly blocks: readonly Block[];
  readonly metadata: JsonObject | null;
  /** `null` is no reward, which is not the same as a reward of 0. Always finite. */
  readonly reward: number | null;
  /** The episode is over. */
  readonly finished: boolean;
}

/**
 * What became of a call. `ok: false` is something for a model to read: it asked for a tool that is not there, or in a way
 * that does not fit, or the tool itself says that it did not work. Anything else that goes wrong is thrown.
 */
export type Outcome =
  | { readonly ok: true; readonly output: ToolOutput }
  | { readonly ok: false; readonly error: string; readonly reason?: 'not_found' | 'input_validation' };

/**
 * `invalid_split`  there is no such split
 * `invalid_index`  there is no such task in it
 * `invalid_task`   the task that was given cannot be used
 * `unsupported`    this environment cannot do that
 * `busy`           too much is going on; to be tried again
 * `unavailable`    what is behind it is away; to be tried again
 * `gone`           what is behind it has lost the episode
 * `failed`         anything else
 */
export type EnvironmentErrorCode =
  | 'invalid_split'
  | 'invalid_index'
  | 'invalid_task'
  | 'unsupported'
  | 'busy'
  | 'unavailable'
  | 'gone'
  | 'failed';

export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
  readonly code: EnvironmentErrorCode;
  /** The message is one sentence, fit to be shown to whoever asked. */
  constructor(code: EnvironmentErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The words that clients know. */
export const invalidSplit = (): EnvironmentError => new EnvironmentError('invalid_split', 'Invalid split');
export const invalidIndex = (): EnvironmentError => new EnvironmentError('invalid_index', 'Invalid index');
/** More tasks are not given at once, unless an environment says itself that all of them may be. */
export const MAX_LISTED = 10_000;
export const notListed = (): EnvironmentError =>
  new EnvironmentError(
    'unsupported',
    'list_tasks is not supported for this environment. Use the index-based API (num_tasks + get_task) instead.',
  );

/** Where the task of an episode comes from. */
export type TaskChoice = { readonly task: JsonObject } | { readonly split: string; readonly index: number };

export interface EpisodeRequest {
  readonly sid: string;
  readonly principal: string;
  readonly choice: TaskChoice;
  readonly secrets: Readonly<Record<string, string>>;
}

export interface EpisodeCall {
  readonly name: string;
  readonly input: JsonObject;
  /** The id under which the gateway runs it; random. */
  readonly taskId: string;
  /** Aborted when its time is over or the session ends. Never because a client has left. */
  readonly signal: AbortSignal;
}

/**
 * One episode that has been set up. Calls may come at the same time. Whatever it throws is told to the client: an
 * `EnvironmentError` in its own words. What it gives back settles when the work is really over: whoever asked does not
 * wait behind an aborted signal, but the teardown does, for a while.
 */
export interface Episode {
  /** Those that all tasks share, and those of this task. */
  tools(signal: AbortSignal): Promise<readonly ToolSpec[]>;
  prompt(signal: AbortSignal): Promise<readonly Block[]>;
  call(call: EpisodeCall): Promise<Outcome>;
  /** How long a tool may take by its own account, in ms; 0: no limit. Absent: what the settings say. */
  timeLimitMs?(tool: string): number | undefined;
  /** The teardown. Called once, after all calls have ended or were told to. */
  close(): Promise<void>;
}

/** Something that can be trained in. Indexes are never negative here and ranges are clamped already, ends excluded. */
export interface Environment {
  /** In lower case. */
  readonly name: string;
  readonly kind: 'module' | 'mcp' | 'upstream';
  splits(): Promise<readonly Split[]>;
  /** Those that all tasks share. */
  tools(): Promise<readonly ToolSpec[]>;
  tasks(split: string): Promise<readonly JsonObject[]>;
  count(split: string): Promise<number>;
  task(split: string, index: number): Promise<JsonObject>;
  range(split: string, start: number, stop: number): Promise<readonly JsonObject[]>;
  /** Whether an episode could be opened; throws an `EnvironmentError` for a split or index that does not exist. */
  check(choice: TaskChoice): Promise<void>;
  /** The setup. When it throws, or ends behind an aborted signal, nothing is left of the episode. */
  open(request: EpisodeRequest, signal: AbortSignal): Promise<Episode>;
  /** The gateway stops; all episodes are closed. */
  close(): Promise<void>;
}
