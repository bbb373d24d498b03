import type { Agent } from '../manifests/agent.ts';
import type { Capability } from '../manifests/capability.ts';
import { isObject } from '../manifests/plain.ts';
import { AgentUnusable, modelsOf } from '../manifests/variables.ts';
import { type Answer, AnswerFold } from '../models/answer.ts';
import type { ModelMessage, ToolSpec } from '../models/model.ts';
import { ModelError } from '../models/model-error.ts';
import type { Models } from '../models/models.ts';
import type { ToolRegistry } from '../tools/registry.ts';
import { type Progress, type Tool, ToolError, type ToolResult } from '../tools/tool.ts';

/** How far it has got: a number, or some more of the answer. */
export type CapabilityStep = { readonly progress: Progress } | { readonly delta: string };

export interface CapabilityRun {
  readonly agent: Agent;
  readonly capability: Capability;
  readonly input: Readonly<Record<string, unknown>>;
  readonly principal: string;
  readonly signal: AbortSignal;
  readonly step: (step: CapabilityStep) => Promise<void>;
}

export interface CapabilityParts {
  readonly registry: ToolRegistry;
  readonly models: Models;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A capability that ran and failed, or could not run; a sentence. */
export class CapabilityFailed extends Error {
  override readonly name = 'CapabilityFailed';
  readonly timeout: boolean;
  readonly retryable: boolean;
  constructor(message: string, { timeout = false, retryable = false, cause }: CapabilityFailedOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.timeout = timeout;
    this.retryable = retryable;
  }
}

interface CapabilityFailedOptions {
  readonly timeout?: boolean;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/** When an agent names no model: whichever is there. */
const ANY_MODEL = 'default';

const textOf = ({ content }: ToolResult): string =>
  content.map((block) => (block.type === 'text' ? block.text : JSON.stringify(block))).join('\n');

/** A result is an object: what a tool has structured, or else its text or its blocks. */
const resultOf = (result: ToolResult): unknown => {
  if (isObject(result.structured)) return result.structured;
  const onlyText = result.content.every(({ type }) => type === 'text');
  return onlyText ? { text: textOf(result) } : { content: result.content };
};

/** The tool behind a capability, if there is one: what the manifest binds, or the tool that brings it along. */
const toolBehind = (
  { capability }: CapabilityRun,
  { registry }: CapabilityParts,
): { readonly name: string; readonly tool: Tool | undefined } | undefined => {
  const { binding, tool: brought, name } = capability;
  if (binding) {
    const tool = binding.tool ?? binding.handler ?? name;
    const full = binding.mcpServer === undefined ? tool : `${binding.mcpServer}.${tool}`;
    return { name: full, tool: registry.find(full) };
  }
  const found = brought === undefined ? undefined : registry.find(brought);
  return found && brought !== undefined ? { name: brought, tool: found } : undefined;
};

/** Does what a capability promises: by the tool that it is bound to, or by the agent itself. */
export const runCapability = async (run: CapabilityRun, parts: CapabilityParts): Promise<unknown> => {
  const behind = toolBehind(run, parts);
  try {
    return behind ? await byTool(run, parts, behind.name) : await byAgent(run, parts);
  } catch (error) {
    if (run.signal.aborted) throw run.signal.reason;
    if (error instanceof ToolError) {
      const retryable = error.code === 'busy' || error.code === 'unavailable';
      throw new CapabilityFailed(error.message, { timeout: error.code === 'timeout', retryable, cause: error });
    }
    if (error instanceof ModelError) {
      throw new CapabilityFailed(error.message, {
        timeout: error.code === 'timeout',
        retryable: error.retryable,
        cause: error,
      });
    }
    if (error instanceof AgentUnusable) throw new CapabilityFailed(error.message, { cause: error });
    throw error;
  }
};

const byTool = async (run: CapabilityRun, { registry }: CapabilityParts, name: string): Promise<unknown> => {
  const { input, principal, signal, step } = run;
  if (registry.find(name)?.approval === 'always') {
    throw new CapabilityFailed(`${name} may only be called when somebody agrees, and here nobody can be asked.`);
  }
  const progress = (update: Progress): void => {
    step({ progress: update }).catch(() => {}); // it is over, and the call will hear of it
  };
  const result = await registry.call(name, input, { principal, signal, progress });
  if (result.isError) throw new CapabilityFailed(textOf(result) || `${name} has failed.`);
  return resultOf(result);
};

/** Some backends allow nothing else in the name of a tool. */
const callName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);

/** The tools of an agent that can be called without asking anybody, by the name that its model knows. */
const toolsOf = ({ agent }: CapabilityRun, { registry }: CapabilityParts): ReadonlyMap<string, string> => {
  const names = new Set(agent.tools.flatMap(({ name, source }) => [name, source].filter((one) => one !== undefined)));
  const known = registry.list().filter(({ name, fullName, tool }) => {
    if (tool.approval !== 'never') return false;
    // A tool by its name, or everything that an MCP server of that name offers.
    return names.has(name) || names.has(fullName) || (tool.source.kind === 'mcp' && names.has(tool.source.name));
  });
  return new Map(known.map(({ name }) => [callName(name), name]));
};

const messagesOf = ({ agent, capability, input }: CapabilityRun): ModelMessage[] => {
  const instructions = [agent.instructions, capability.description && `Your task: ${capability.description}`];
  const system = instructions.filter(Boolean).join('\n\n');
  const [only, ...more] = Object.values(input);
  const content = typeof only === 'string' && more.length === 0 ? only : JSON.stringify(input);
  return [...(system === '' ? [] : [{ role: 'system', content: system } as const]), { role: 'user', content }];
};

/** The agent itself: one answer of its model, the tools that it calls, and one last answer without tools. */
const byAgent = async (run: CapabilityRun, parts: CapabilityParts): Promise<unknown> => {
  const tools = toolsOf(run, parts);
  const messages = messagesOf(run);
  const specs = [...tools].map(([name, full]): ToolSpec => {
    const { description, inputSchema } = parts.registry.find(full) as Tool;
    return { name, description, parameters: inputSchema };
  });
  const first = await ask(run, parts, messages, specs);
  if (first.toolCalls.length === 0) return answerOf(run, first);
  messages.push({
    role: 'assistant',
    content: first.text,
    tool_calls: first.toolCalls.map(({ id, name, arguments: text }) => ({
      ...{ id, type: 'function' as const },
      function: { name, arguments: text },
    })),
  });
  for (const call of first.toolCalls) {
    const content = await called(run, parts, tools.get(call.name), call.name, call.arguments);
    messages.push({ role: 'tool', tool_call_id: call.id, content });
  }
  return answerOf(run, await ask(run, parts, messages, []));
};

/** What a tool gave, or why it could not, for the model to read. */
const called = async (
  { principal, signal }: CapabilityRun,
  { registry }: CapabilityParts,
  tool: string | undefined,
  name: string,
  text: string,
): Promise<string> => {
  if (tool === undefined) return `There is no tool ${name}.`;
  try {
    return textOf(await registry.call(tool, JSON.parse(text === '' ? '{}' : text), { principal, signal }));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof SyntaxError) return 'The arguments are not JSON.';
    if (error instanceof ToolError) return error.message;
    throw error;
  }
};

const ask = async (
  { agent, principal, signal, step }: CapabilityRun,
  { models, env }: CapabilityParts,
  messages: readonly ModelMessage[],
  tools: readonly ToolSpec[],
): Promise<Answer> => {
  const [first = { model: ANY_MODEL }, ...others] = modelsOf(agent, env);
  const fold = new AnswerFold();
  const events = models.stream(
    {
      ...{ model: first.model, messages, user: principal },
      ...(tools.length > 0 && { tools }),
      ...(first.temperature !== undefined && { temperature: first.temperature }),
      ...(first.maxTokens !== undefined && { maxTokens: first.maxTokens }),
    },
    { signal, fallbacks: others.map(({ model }) => model) },
  );
  for await (const event of events) {
    fold.add(event);
    if (event.type === 'text') await step({ delta: event.delta });
  }
  return fold.answer;
};

/** JSON if that was promised and is what came, otherwise the text. */
const answerOf = ({ capability }: CapabilityRun, { text, model, refusal }: Answer): unknown => {
  if (text === '' && refusal !== '') throw new CapabilityFailed(refusal);
  if (capability.outputCheck) {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value) && capability.outputCheck.fault(value) === undefined) return value;
    } catch {
      // Text, then.
    }
  }
  return { text, model };
};
