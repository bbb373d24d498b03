import { type Environment, fill } from '../tools/placeholders.ts';
import type { Agent, AgentTool } from './agent.ts';
import { given } from './plain.ts';

export interface Model {
  readonly provider?: string;
  readonly model: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
}

/** An agent that cannot be used as it is set up; one sentence. */
export class AgentUnusable extends Error {
  override readonly name = 'AgentUnusable';
}

const filled = (agent: string, what: string, text: string, env: Environment): string => {
  try {
    return fill(text, env).text;
  } catch (error) {
    throw new AgentUnusable(`The agent ${agent} cannot be used: ${what} needs more: ${(error as Error).message}.`);
  }
};

const number = (
  agent: string,
  what: string,
  value: number | string | undefined,
  env: Environment,
  fits: (value: number) => boolean,
): number | undefined => {
  if (typeof value !== 'string') return value;
  const text = filled(agent, what, value, env).trim();
  const result = text === '' ? Number.NaN : Number(text);
  if (fits(result)) return result;
  throw new AgentUnusable(
    `The agent ${agent} cannot be used: ${what} cannot be ${JSON.stringify(text)} (from ${value}).`,
  );
};

const isTemperature = (value: number): boolean => value >= 0 && value <= 2;
const isTokens = (value: number): boolean => Number.isInteger(value) && value >= 1;

/**
 * The models an agent asks for, the first one before those it falls back to, with the environment put in; empty if it names
 * none. Throws an `AgentUnusable`: a variable that is missing is nobody's trouble until the agent is used.
 */
export const modelsOf = ({ name, llm }: Agent, env: Environment): readonly Model[] => {
  if (!llm) return [];
  const first = given({
    provider: filled(name, 'llm.provider', llm.provider, env),
    model: filled(name, 'llm.model', llm.model, env),
    temperature: number(name, 'llm.temperature', llm.temperature, env, isTemperature),
    maxTokens: number(name, 'llm.maxTokens', llm.maxTokens, env, isTokens),
  });
  const others = llm.fallbackModels.map((fallback, i) => {
    const what = `llm.fallback_models[${i}]`;
    return given({
      provider: fallback.provider === undefined ? undefined : filled(name, `${what}.provider`, fallback.provider, env),
      model: filled(name, `${what}.model`, fallback.model, env),
      temperature: number(name, `${what}.temperature`, fallback.temperature, env, isTemperature),
      maxTokens: first.maxTokens,
    });
  });
  return [first, ...others];
};

/** The tools of an agent with the environment put in. Throws an `AgentUnusable`. */
export const toolsOf = ({ name, tools }: Agent, env: Environment): readonly AgentTool[] =>
  tools.map((tool, i) => {
    const what = `tools[${i}]`;
    const at = (field: 'name' | 'source'): string | undefined => {
      const text = tool[field];
      return text === undefined ? undefined : filled(name, `${what}.${field}`, text, env);
    };
    return { ...tool, ...given({ name: at('name'), source: at('source') }) };
  });
