import { messageOf } from '../../tools/message-of.ts';
import { type DefinedTool, isDefinedTool } from '../../tools/module/define-tool.ts';
import { TOOL_NAME, toolOf } from '../../tools/module/tool-module.ts';
import { SchemaCheck } from '../../tools/schema-check.ts';
import type { JsonObject, ToolResult } from '../../tools/tool.ts';
import { Turns } from '../../tools/turns.ts';
import type { Outcome, ToolSpec } from '../environment.ts';
import { invalidInput } from '../outcome.ts';
import { outputOf } from '../output.ts';
import { isObject, kindOf } from '../plain-data.ts';
import { blocksOfResult, errorOfResult } from '../tool-result.ts';
import type { EnvironmentTool, EpisodeContext } from './define-environment.ts';

/** A tool of an environment, ready to be called. */
export interface EpisodeTool {
  readonly spec: ToolSpec;
  /** Whether it is known without an episode. */
  readonly shared: boolean;
  /** 0: no limit. Absent: what the settings say. */
  readonly timeLimitMs?: number;
  call(input: JsonObject, episode: EpisodeContext<JsonObject, unknown>): Promise<Outcome>;
}

const KEYS = ['name', 'description', 'input', 'timeoutSeconds', 'shared', 'run'];

const isFailure = (answer: unknown): answer is ToolResult =>
  typeof answer === 'object' &&
  answer !== null &&
  (answer as ToolResult).isError === true &&
  Array.isArray((answer as ToolResult).content);

const failureOf = (result: ToolResult): Outcome => ({ ok: false, error: errorOfResult(result) });

const checkOf = (tool: string, schema: JsonObject): SchemaCheck => {
  try {
    return new SchemaCheck(schema);
  } catch (error) {
    throw new Error(`The input of the tool ${tool}: ${messageOf(error)}`);
  }
};

/** What does not fit is not called. */
const checkedFirst = (tool: string, schema: JsonObject | undefined, call: EpisodeTool['call']): EpisodeTool['call'] => {
  if (!schema) return call;
  const check = checkOf(tool, schema);
  return async (input, episode) => {
    const fault = check.fault(input);
    return fault === undefined ? call(input, episode) : invalidInput(fault);
  };
};

/** A tool of the gateway: it knows nothing of rewards, and whatever it gives is something to read. */
const ofDefinedTool = (defined: DefinedTool): EpisodeTool => {
  const tool = toolOf(defined, { kind: 'module', name: 'environment' });
  const { name, description } = tool;
  if (tool.approval === 'always') throw new Error(`Nobody can agree to a call of the tool ${name} in an episode.`);
  const turns = new Turns(tool.concurrency);
  return {
    spec: { name, description, input_schema: defined.input ?? null },
    shared: true,
    timeLimitMs: tool.timeoutMs,
    call: checkedFirst(name, defined.input, async (input, { signal, principal, secrets }) => {
      const end = await turns.take(signal);
      try {
        const result = await tool.call(input, { signal, principal, secrets, progress: () => {} });
        return result.isError
          ? failureOf(result)
          : { ok: true, output: outputOf(name, { blocks: blocksOfResult(result) }) };
      } finally {
        end();
      }
    }),
  };
};

const checked = (given: unknown): EnvironmentTool<JsonObject, unknown> => {
  if (!isObject(given)) throw new Error(`A tool must be an object, not ${kindOf(given)}.`);
  const { name, description, input, timeoutSeconds, shared, run } = given;
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    const wrong = typeof name === 'string' ? JSON.stringify(name) : kindOf(name);
    throw new Error(`A tool's name has letters, digits, "_" and "-", not ${wrong}.`);
  }
  const extra = Object.keys(given).find((key) => !KEYS.includes(key));
  if (extra !== undefined) throw new Error(`The tool ${name} has ${extra}, which is not known.`);
  if (typeof description !== 'string') throw new Error(`The tool ${name} has no description.`);
  if (typeof run !== 'function') throw new Error(`The tool ${name} has no function "run".`);
  if (input !== undefined && (!isObject(input) || input.type !== 'object')) {
    throw new Error(`The input of the tool ${name} must be a schema of the type object.`);
  }
  if (timeoutSeconds !== undefined && !(Number.isFinite(timeoutSeconds) && (timeoutSeconds as number) >= 0)) {
    throw new Error(`timeoutSeconds of the tool ${name} must be a number from 0.`);
  }
  if (shared !== undefined && typeof shared !== 'boolean') {
    throw new Error(`shared of the tool ${name} must be true or false.`);
  }
  return given as unknown as EnvironmentTool<JsonObject, unknown>;
};

/** Throws one sentence if it is not a whole tool. */
export const episodeTool = (given: unknown): EpisodeTool => {
  if (isDefinedTool(given)) return ofDefinedTool(given);
  const tool = checked(given);
  const { name, description, input, timeoutSeconds, shared = true } = tool;
  return {
    spec: { name, description, input_schema: input ?? null },
    shared,
    ...(timeoutSeconds !== undefined && { timeLimitMs: timeoutSeconds * 1_000 }),
    call: checkedFirst(name, input, async (fields, episode) => {
      const answer = await tool.run(fields, episode);
      return isFailure(answer) ? failureOf(answer) : { ok: true, output: outputOf(name, answer) };
    }),
  };
};
