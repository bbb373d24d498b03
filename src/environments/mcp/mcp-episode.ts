import type { McpServer } from '../../tools/mcp/mcp-server.ts';
import { SchemaCheck } from '../../tools/schema-check.ts';
import { type JsonObject, type Schema, type Tool, ToolError, type ToolResult } from '../../tools/tool.ts';
import { Turns } from '../../tools/turns.ts';
import {
  type Block,
  EnvironmentError,
  type Episode,
  type EpisodeCall,
  type Outcome,
  type ToolSpec,
} from '../environment.ts';
import { invalidInput, unknownTool } from '../outcome.ts';
import { blocksOfResult, errorOfResult } from '../tool-result.ts';
import { untilAborted } from '../until-aborted.ts';
import type { Judge, Verdict } from './reward.ts';
import { specsOf } from './specs.ts';
import { SUBMITTED } from './submit.ts';

export interface McpEpisodeOptions {
  /** Ready, and nobody else's. */
  readonly server: McpServer;
  readonly task: JsonObject;
  readonly prompt: readonly Block[];
  readonly principal: string;
  readonly submit: ToolSpec | undefined;
  readonly judge: Judge;
  readonly timeoutMs: number | undefined;
  /** Ends the server. */
  readonly end: () => Promise<void>;
}

/** What JSON-RPC calls parameters that do not fit. */
const INVALID_PARAMS = -32_602;

const gone = (reason: string, cause?: unknown): EnvironmentError =>
  new EnvironmentError('gone', `${reason} The state of the episode is lost with it.`, cause);

/** One episode with a server of its own. What the server remembers is the state of the episode. */
export class McpEpisode implements Episode {
  private readonly options: McpEpisodeOptions;
  private readonly turns: Turns;
  private readonly checks = new WeakMap<Schema, SchemaCheck>();
  private readonly state: Record<string, unknown> = {};
  private calls = 0;

  constructor(options: McpEpisodeOptions) {
    this.options = options;
    this.turns = new Turns(options.server.concurrency);
  }

  async tools(): Promise<readonly ToolSpec[]> {
    const { server, submit } = this.options;
    return specsOf(server.tools(), submit);
  }

  async prompt(): Promise<readonly Block[]> {
    return this.options.prompt;
  }

  timeLimitMs(tool: string): number | undefined {
    return tool === this.options.submit?.name ? undefined : this.options.timeoutMs;
  }

  async call({ name, input, signal }: EpisodeCall): Promise<Outcome> {
    const { server, submit, task, judge } = this.options;
    signal.throwIfAborted();
    if (!server.usable)
      throw gone(`The MCP server of the episode has ended: ${server.state.lastError ?? 'it was stopped.'}`);
    const submits = name === submit?.name;
    const tool = submits ? undefined : server.tools().find((one) => one.name === name);
    const schema = submits ? (submit.input_schema as Schema) : tool?.inputSchema;
    if (!schema) return unknownTool(name);
    const fault = this.checkOf(name, schema).fault(input);
    if (fault !== undefined) return invalidInput(fault);
    let result = SUBMITTED;
    if (tool) {
      const answered = await this.run(tool, input, signal);
      if ('ok' in answered) return answered;
      result = answered;
    }
    const calls = ++this.calls;
    const { state } = this;
    const call = { tool: name, input, result, task, calls, state, signal };
    return outcomeOf(result, await untilAborted(signal, () => judge(call)), submits);
  }

  close(): Promise<void> {
    return this.options.end();
  }

  private async run(tool: Tool, input: JsonObject, signal: AbortSignal): Promise<ToolResult | Outcome> {
    const { principal, server } = this.options;
    try {
      const done = await this.turns.take(signal);
      try {
        return await tool.call(input, { signal, principal, secrets: {}, progress: () => {} });
      } finally {
        done();
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!(error instanceof ToolError)) throw error;
      // What the server checks beyond its own schema is a mistake of the model all the same.
      if ((error.cause as { code?: unknown } | undefined)?.code === INVALID_PARAMS) return invalidInput(error.message);
      if (!server.usable) throw gone(error.message, error);
      throw new EnvironmentError(error.code === 'busy' ? 'busy' : 'failed', error.message, error);
    }
  }

  private checkOf(tool: string, schema: Schema): SchemaCheck {
    const known = this.checks.get(schema);
    if (known) return known;
    try {
      const check = new SchemaCheck(schema);
      this.checks.set(schema, check);
      return check;
    } catch (error) {
      throw new EnvironmentError('failed', `${tool}: ${(error as Error).message}`, error);
    }
  }
}

const outcomeOf = (result: ToolResult, verdict: Verdict, submits: boolean): Outcome => {
  const { reward, finished = submits, metadata } = verdict;
  // A failure is an answer of its own, which has no place for a reward or an end: only with these it becomes an output.
  if (result.isError && reward === null && !finished) return { ok: false, error: errorOfResult(result) };
  const structured = result.structured === undefined ? {} : { structured: result.structured };
  const failed = result.isError ? { failed: true } : {};
  const all = { ...structured, ...failed, ...metadata };
  return {
    ok: true,
    output: { blocks: blocksOfResult(result), metadata: Object.keys(all).length > 0 ? all : null, reward, finished },
  };
};
