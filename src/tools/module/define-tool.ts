import {
  type ApprovalRule,
  type JsonObject,
  type Schema,
  type ToolContext,
  type ToolResult,
  textResult,
} from '../tool.ts';

/** What a tool of a module may give back: text, anything that JSON can say, or whole blocks. */
export type ToolAnswer = string | number | boolean | null | ToolResult | JsonObject | readonly unknown[] | undefined;

export interface ToolDefinition<Input extends JsonObject = JsonObject> {
  /** Letters, digits, `_` and `-`; at most 64. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input, which is always an object. What does not fit it never reaches `run`. */
  readonly input?: Schema;
  readonly output?: Schema;
  /** 0: none. Default 60. */
  readonly timeoutSeconds?: number;
  /** Calls at the same time; 0: any number, the default. */
  readonly concurrency?: number;
  /** `always`: somebody has to agree before each call. */
  readonly approval?: ApprovalRule;
  /** What it throws is a fault; what it wants a model to read about a failure it gives back with `fail`. */
  run(input: Input, context: ToolContext): ToolAnswer | Promise<ToolAnswer>;
}

export const TOOL_MARK = Symbol.for('sluice.tool');

/** A tool of a module, marked so that the gateway finds it among the module's exports. */
export type DefinedTool = ToolDefinition & { readonly [TOOL_MARK]: true };

/** Declares a tool. A module exports what this returns, by any name or in a list. */
export const defineTool = <Input extends JsonObject = JsonObject>(definition: ToolDefinition<Input>): DefinedTool =>
  Object.freeze({ ...definition, [TOOL_MARK]: true as const }) as unknown as DefinedTool;

export const isDefinedTool = (value: unknown): value is DefinedTool =>
  typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[TOOL_MARK] === true;

/** The tool did not succeed, and whoever called it should read why. */
export const fail = (message: string): ToolResult => textResult(message, true);

const isResult = (answer: unknown): answer is ToolResult =>
  typeof answer === 'object' && answer !== null && Array.isArray((answer as ToolResult).content);

export const resultOfAnswer = (answer: ToolAnswer): ToolResult => {
  if (typeof answer === 'string') return textResult(answer);
  if (answer === undefined) return textResult('');
  if (isResult(answer)) return { ...answer, isError: answer.isError === true };
  return { ...textResult(JSON.stringify(answer)), structured: answer };
};
