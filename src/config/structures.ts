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
