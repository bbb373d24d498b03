import { resolve } from 'node:path';
import type { SchemaObject } from 'ajv';

// Settings that have parts. They are declared here and not in the rooms that use them: config stands beside the house and
// imports nothing of it.

export interface HttpToolSettings {
  readonly description?: string;
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With places for fields of the input: `https://host/weather/{city}`. */
  readonly url: string;
  /** `${NAME}` and `${NAME:-otherwise}` stand for variables of the environment, here and in the URL. */
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON Schema. */
  readonly input?: Readonly<Record<string, unknown>>;
  readonly output?: Readonly<Record<string, unknown>>;
  readonly timeoutSeconds?: number;
  readonly maxBytes?: number;
  readonly concurrency?: number;
  readonly approval?: 'never' | 'always';
  /** Whether it may talk to addresses of private networks. */
  readonly allowPrivate?: boolean;
}

export type HttpToolsSettings = Readonly<Record<string, HttpToolSettings>>;

const TEXT = { type: 'string', minLength: 1, maxLength: 4096 } as const;

export const HTTP_TOOLS_SCHEMA: SchemaObject = {
  type: 'object',
  maxProperties: 1000,
  propertyNames: { pattern: '^[A-Za-z0-9_-]{1,64}$' },
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['url'],
    properties: {
      description: { type: 'string', maxLength: 16_384 },
      method: { enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] },
      url: TEXT,
      headers: { type: 'object', maxProperties: 100, additionalProperties: { type: 'string', maxLength: 16_384 } },
      input: { type: 'object' },
      output: { type: 'object' },
      timeoutSeconds: { type: 'number', exclusiveMinimum: 0, maximum: 86_400 },
      maxBytes: { type: 'integer', minimum: 1, maximum: 16_777_216 },
      concurrency: { type: 'integer', minimum: 0, maximum: 10_000 },
      approval: { enum: ['never', 'always'] },
      allowPrivate: { type: 'boolean' },
    },
  },
};

export interface BackendSettings {
  readonly name: string;
  readonly baseUrl: string;
  /** `${NAME}` stands for a variable of the environment, here and in the headers. */
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Names, or patterns with `*`. Without any it serves every model. */
  readonly models?: readonly string[];
}

export const BACKENDS_SCHEMA: SchemaObject = {
  type: 'array',
  maxItems: 100,
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['name', 'baseUrl'],
    properties: {
      name: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
      baseUrl: { type: 'string', format: 'http-url' },
      apiKey: TEXT,
      headers: { type: 'object', maxProperties: 100, additionalProperties: { type: 'string', maxLength: 16_384 } },
      models: { type: 'array', maxItems: 1000, items: TEXT },
    },
  },
};

/** What every environment may have. */
interface EnvironmentLimits {
  /** Sessions at the same time on one replica; 0: any number. */
  readonly maxSessions?: number;
  /** Sessions that may wait for a place. */
  readonly maxQueued?: number;
  /** How long a call may take, where the tool itself says nothing else; 0: for ever. */
  readonly callTimeoutSeconds?: number;
  /** Bytes of one result as JSON. */
  readonly maxOutputBytes?: number;
}

/** A JavaScript file that exports what `defineEnvironment` has made. */
export interface ModuleEnvironmentSettings extends EnvironmentLimits {
  readonly module: string;
  /** In the place of the one that the module gives. */
  readonly name?: string;
}

/** The tools of an MCP server, one process or connection per session. */
export interface McpEnvironmentSettings extends EnvironmentLimits {
  readonly name: string;
  /**
   * As one of the `mcpServers` of an MCP configuration file. `${secrets.NAME}` in `env` and `headers` stands for a secret
   * of the session.
   */
  readonly mcp: Readonly<Record<string, unknown>>;
  /** Files with one task, a JSON object, per line; by split. */
  readonly tasks: Readonly<Record<string, string>>;
  /** How long the server may take until it has listed its tools. */
  readonly startTimeoutSeconds?: number;
  /** The tools of the server that the environment has; all if absent. */
  readonly tools?: readonly string[];
  /** With `{field}` for fields of the task; the field `prompt` of the task if absent. */
  readonly prompt?: string;
  /** A tool of the gateway's own with which the episode ends. */
  readonly submit?:
    | boolean
    | { readonly name?: string; readonly description?: string; readonly input?: Readonly<Record<string, unknown>> };
  /** An expression in CEL. */
  readonly reward?: string;
  readonly finished?: string;
  /** A JavaScript file that exports what `defineReward` has made, in the place of the expressions. */
  readonly rewardModule?: string;
}

/** An environment of another ORS server. */
export interface UpstreamEnvironmentSettings extends EnvironmentLimits {
  readonly name: string;
  /** Its base URL. */
  readonly upstream: string;
  /** What it is called there; the same if absent. */
  readonly environment?: string;
  /** `${NAME}` stands for a variable of the environment. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type EnvironmentSettings = ModuleEnvironmentSettings | McpEnvironmentSettings | UpstreamEnvironmentSettings;

/** Modules give themselves names too. */
export const ENVIRONMENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** Of one result, as long as the settings do not ask for less. */
export const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

const NAME = { type: 'string', pattern: ENVIRONMENT_NAME.source } as const;
const FILE = { type: 'string', format: 'readable-file' } as const;

const environment = (
  required: readonly string[],
  properties: Readonly<Record<string, SchemaObject>>,
): SchemaObject => ({
  type: 'object',
  additionalProperties: false,
  required: [...required],
  properties: {
    name: NAME,
    maxSessions: { type: 'integer', minimum: 0, maximum: 1_000_000 },
    maxQueued: { type: 'integer', minimum: 0, maximum: 1_000_000 },
    callTimeoutSeconds: { type: 'number', minimum: 0, maximum: 86_400 },
    maxOutputBytes: { type: 'integer', minimum: 1, maximum: MAX_OUTPUT_BYTES },
    ...properties,
  },
});

/** The one word that only its kind has asks for the rest, so that a mistake is told in the words of that kind. */
export const ENVIRONMENTS_SCHEMA: SchemaObject = {
  type: 'array',
  maxItems: 1000,
  items: {
    type: 'object',
    hasOneOf: ['module', 'mcp', 'upstream'],
    dependencies: {
      module: environment(['module'], { module: FILE }),
      mcp: environment(['name', 'mcp', 'tasks'], {
        mcp: { type: 'object' },
        tasks: { type: 'object', minProperties: 1, maxProperties: 100, additionalProperties: FILE },
        startTimeoutSeconds: { type: 'number', exclusiveMinimum: 0, maximum: 86_400 },
        tools: { type: 'array', maxItems: 1000, items: TEXT },
        prompt: { type: 'string', maxLength: 65_536 },
        submit: {
          type: ['boolean', 'object'],
          additionalProperties: false,
          properties: { name: TEXT, description: { type: 'string', maxLength: 16_384 }, input: { type: 'object' } },
        },
        reward: TEXT,
        finished: TEXT,
        rewardModule: FILE,
      }),
      upstream: environment(['name', 'upstream'], {
        upstream: { type: 'string', format: 'http-url' },
        environment: NAME,
        headers: { type: 'object', maxProperties: 100, additionalProperties: { type: 'string', maxLength: 16_384 } },
      }),
    },
  },
};

/** A process works where the files of the settings are looked for, unless they say otherwise. */
const resolveServer = (mcp: McpEnvironmentSettings['mcp'], directory: string): Readonly<Record<string, unknown>> => {
  const { command, cwd = '.' } = mcp;
  if (typeof command !== 'string' || typeof cwd !== 'string' || cwd.startsWith('${')) return mcp;
  return { ...mcp, cwd: resolve(directory, cwd) };
};

/** Files are looked for from the directory in which the gateway works. */
export const resolveEnvironments = (
  environments: readonly EnvironmentSettings[],
  directory: string,
): readonly EnvironmentSettings[] =>
  environments.map((one) => {
    if ('module' in one) return { ...one, module: resolve(directory, one.module) };
    if (!('mcp' in one)) return one;
    const files = Object.entries(one.tasks).map(([split, file]) => [split, resolve(directory, file)]);
    return {
      ...one,
      mcp: resolveServer(one.mcp, directory),
      tasks: Object.fromEntries(files) as Record<string, string>,
      ...(one.rewardModule !== undefined && { rewardModule: resolve(directory, one.rewardModule) }),
    };
  });
