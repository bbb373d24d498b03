import { statSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf } from '../message-of.ts';
import { SchemaCheck } from '../schema-check.ts';
import type { Schema, Tool, ToolProvider, ToolSource } from '../tool.ts';
import { type DefinedTool, isDefinedTool, resultOfAnswer } from './define-tool.ts';
import { makeOwnNameKnown } from './own-name.ts';

const DEFAULT_TIMEOUT_SECONDS = 60;
export const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ANY_OBJECT: Schema = { type: 'object' };

/** Loads a file as a module; a file that has changed is loaded anew. */
export type ImportModule = (url: string) => Promise<Readonly<Record<string, unknown>>>;

const importModule: ImportModule = (url) => {
  makeOwnNameKnown();
  return import(url) as Promise<Readonly<Record<string, unknown>>>;
};

/** What a file exports. */
export const exportsOf = (path: string, load: ImportModule = importModule): ReturnType<ImportModule> =>
  load(`${pathToFileURL(path).href}?v=${statSync(path).mtimeMs}`);

const checked = (defined: DefinedTool): DefinedTool => {
  const { name, description, input = ANY_OBJECT, run } = defined;
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    throw new Error(`A tool's name has letters, digits, "_" and "-", not ${JSON.stringify(name)}.`);
  }
  if (typeof description !== 'string') throw new Error(`The tool ${name} has no description.`);
  if (typeof run !== 'function') throw new Error(`The tool ${name} has no function "run".`);
  if (input.type !== 'object') throw new Error(`The input of the tool ${name} must be an object.`);
  new SchemaCheck(input);
  return defined;
};

/** Throws one sentence if it is not a whole tool. */
export const toolOf = (defined: DefinedTool, source: ToolSource): Tool => {
  const { name, description, input = ANY_OBJECT, output, approval = 'never', concurrency = 0 } = checked(defined);
  const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = defined;
  return {
    ...{ name, description, inputSchema: input, source, approval, concurrency },
    ...(output && { outputSchema: output }),
    timeoutMs: timeoutSeconds * 1_000,
    call: async (fields, context) => resultOfAnswer(await defined.run(fields, context)),
  };
};

/** A JavaScript file of the operator that exports tools. Throws one sentence that names the file. */
export const loadToolModule = async (path: string, load?: ImportModule): Promise<ToolProvider> => {
  const source: ToolSource = { kind: 'module', name: basename(path, extname(path)).replaceAll('.', '-') };
  try {
    const exported = await exportsOf(path, load);
    const defined = [...new Set(Object.values(exported).flat())].filter(isDefinedTool);
    if (defined.length === 0) throw new Error('it exports nothing that defineTool has made');
    const tools = defined.map((tool) => toolOf(tool, source));
    const twice = tools.find(({ name }, i) => tools.findIndex((other) => other.name === name) !== i);
    if (twice) throw new Error(`it has two tools called ${twice.name}`);
    return { source, concurrency: 0, tools: () => tools, onChange: () => {} };
  } catch (error) {
    const reason = messageOf(error);
    throw new Error(`The tools of ${path} cannot be used: ${reason}`, { cause: error });
  }
};
