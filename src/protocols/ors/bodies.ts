import { Ajv } from 'ajv';
import { invalidIndex, type TaskChoice } from '../../environments/environment.ts';
import { isTooDeep } from '../../environments/plain-data.ts';
import type { JsonObject } from '../../tools/tool.ts';
import { Problem } from '../problem.ts';

const SPLIT = { type: 'string', maxLength: 1024 } as const;
const INDEX = { type: 'integer', minimum: -(2 ** 53 - 1), maximum: 2 ** 53 - 1 } as const;
const orNull = (schema: object): object => ({ anyOf: [schema, { type: 'null' }] });
const closed = (required: readonly string[], properties: Readonly<Record<string, object>>): object => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
});

export const SPLIT_BODY = closed(['split'], { split: SPLIT });
export const TASK_BODY = closed(['split', 'index'], { split: SPLIT, index: INDEX });
export const RANGE_BODY = closed(['split'], { split: SPLIT, start: orNull(INDEX), stop: orNull(INDEX) });
export const CREATE_BODY = closed([], {
  env_name: orNull({ type: 'string', maxLength: 1024 }),
  task_spec: orNull({ type: 'object' }),
  split: orNull(SPLIT),
  index: orNull(INDEX),
  secrets: orNull({
    type: 'object',
    maxProperties: 1000,
    propertyNames: { maxLength: 1024 },
    additionalProperties: { type: 'string', maxLength: 65_536 },
  }),
  toolset_name: orNull({ type: 'string', maxLength: 1024 }),
});
export const CALL_BODY = closed(['name', 'input'], {
  name: { type: 'string', minLength: 1, maxLength: 1024 },
  input: { type: 'object' },
  task_id: orNull({ type: 'string', maxLength: 1024 }),
});

export interface SplitBody {
  readonly split: string;
}
export interface TaskBody extends SplitBody {
  readonly index: number;
}
export interface RangeBody extends SplitBody {
  readonly start?: number | null;
  readonly stop?: number | null;
}
interface RawCreateBody {
  readonly env_name?: string | null;
  readonly task_spec?: JsonObject | null;
  readonly split?: string | null;
  readonly index?: number | null;
  readonly secrets?: Readonly<Record<string, string>> | null;
}
export interface CreateBody {
  readonly environment: string | undefined;
  readonly choice: TaskChoice;
  readonly secrets: Readonly<Record<string, string>>;
}
export interface CallBody {
  readonly name: string;
  readonly input: JsonObject;
  readonly task_id?: string | null;
}

const ajv = new Ajv({ strict: true, allowUnionTypes: true });

/** Checks a body; the message names the place and never the value, which may be a secret. */
const reader = <T>(schema: object): ((body: unknown) => T) => {
  const isValid = ajv.compile<T>(schema);
  return (body) => {
    if (isValid(body)) return body;
    const { instancePath = '', keyword, params, message = 'is wrong' } = isValid.errors?.[0] ?? {};
    const place = instancePath.slice(1).replaceAll('/', '.');
    if (keyword === 'required') throw new Problem('PROTOCOL_ERROR', `${String(params?.missingProperty)} is missing.`);
    if (keyword === 'additionalProperties') {
      throw new Problem('PROTOCOL_ERROR', `${String(params?.additionalProperty).slice(0, 80)} is not known here.`);
    }
    throw new Problem('PROTOCOL_ERROR', `${place === '' ? 'The body' : place} ${message}.`);
  };
};

export const splitBody = reader<SplitBody>(SPLIT_BODY);
export const rangeBody = reader<RangeBody>(RANGE_BODY);
const rawTaskBody = reader<TaskBody>(TASK_BODY);
const rawCallBody = reader<CallBody>(CALL_BODY);
const rawCreateBody = reader<RawCreateBody>(CREATE_BODY);

/** What is passed on is written as JSON again, copied and compared: some of that would run out of stack. */
const checkDepth = (name: string, value: unknown): void => {
  if (isTooDeep(value)) throw new Problem('PROTOCOL_ERROR', `${name} is nested too deeply.`);
};

/** Only ranges are counted from the end: of one task nobody should have to guess which it is. */
const checkIndex = (index: number): void => {
  if (index < 0) throw invalidIndex();
};

export const taskBody = (body: unknown): TaskBody => {
  const task = rawTaskBody(body);
  checkIndex(task.index);
  return task;
};

export const callBody = (body: unknown): CallBody => {
  const call = rawCallBody(body);
  checkDepth('input', call.input);
  return call;
};

const choiceOf = ({ task_spec: task, split, index }: RawCreateBody): TaskChoice => {
  checkDepth('task_spec', task);
  const bySplit = split != null || index != null;
  if (task != null && !bySplit) return { task };
  if (task != null || split == null || index == null) {
    throw new Problem('PROTOCOL_ERROR', 'Give either task_spec, or both split and index.');
  }
  checkIndex(index);
  return { split, index };
};

/** The header wins, name by name. */
export const createBody = (body: unknown, header: string | undefined): CreateBody => {
  const raw = rawCreateBody(body);
  return {
    environment: raw.env_name ?? undefined,
    choice: choiceOf(raw),
    secrets: { ...raw.secrets, ...secretsOf(header) },
  };
};

/** `X-Secrets`: base64 of `{"NAME": {"value": "..."}}`, or of `{"NAME": "..."}`. */
const secretsOf = (header: string | undefined): Readonly<Record<string, string>> => {
  if (header === undefined || header.trim() === '') return {};
  // Whatever is wrong with it, nothing of it is repeated.
  const wrong = new Problem('PROTOCOL_ERROR', 'X-Secrets must be base64 of a JSON object whose values are texts.');
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  } catch {
    throw wrong;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw wrong;
  const secrets: Record<string, string> = {};
  for (const [name, entry] of Object.entries(parsed)) {
    const value: unknown = typeof entry === 'object' && entry !== null ? (entry as JsonObject).value : entry;
    if (typeof value !== 'string') throw wrong;
    Object.defineProperty(secrets, name, { value, enumerable: true, configurable: true });
  }
  return secrets;
};
