import { countIn, type JsonObject, listIn, objectIn, textIn } from './json.ts';
import type { FinishReason, Usage } from './model.ts';

/** Reading one chunk of Chat Completions, whoever wrote it. */

/** The answer's own choice; others come only to who has asked for several, and nobody here does. */
export const choiceIn = (chunk: JsonObject): JsonObject | undefined => {
  for (const value of listIn(chunk.choices)) {
    const choice = objectIn(value);
    if (choice && (choice.index === undefined || choice.index === null || choice.index === 0)) return choice;
  }
  return undefined;
};

export interface Said {
  readonly text: string;
  readonly reasoning: string;
}

/** A text, or parts of text and thinking. */
const saidIn = (content: unknown): Said => {
  if (typeof content === 'string') return { text: content, reasoning: '' };
  let text = '';
  let reasoning = '';
  for (const value of listIn(content)) {
    const part = objectIn(value);
    if (typeof value === 'string') text += value;
    else if (part?.type === 'thinking' || part?.type === 'reasoning') {
      const inner = saidIn(part.thinking ?? part.reasoning ?? part.text);
      reasoning += inner.text + inner.reasoning;
    } else text += textIn(part?.text) ?? '';
  }
  return { text, reasoning };
};

/** Several fields may hold the same reasoning: the first counts. */
const reasoningIn = (delta: JsonObject): string => {
  for (const value of [delta.reasoning_content, delta.reasoning, delta.thinking]) {
    const found = textIn(value) ?? textIn(objectIn(value)?.content) ?? textIn(objectIn(value)?.text);
    if (found !== undefined) return found;
  }
  return '';
};

export const saidInDelta = (delta: JsonObject): Said => {
  const { text, reasoning } = saidIn(delta.content);
  return { text, reasoning: reasoningIn(delta) + reasoning };
};

const usageOf = (usage: JsonObject): Usage | undefined => {
  const input = countIn(usage.prompt_tokens) ?? countIn(usage.input_tokens);
  const output = countIn(usage.completion_tokens) ?? countIn(usage.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const inputDetails = objectIn(usage.prompt_tokens_details) ?? objectIn(usage.input_tokens_details);
  const outputDetails = objectIn(usage.completion_tokens_details) ?? objectIn(usage.output_tokens_details);
  const cached = countIn(inputDetails?.cached_tokens) ?? countIn(usage.prompt_cache_hit_tokens);
  const reasoning = countIn(outputDetails?.reasoning_tokens);
  return {
    input: input ?? 0,
    output: output ?? 0,
    total: countIn(usage.total_tokens) ?? (input ?? 0) + (output ?? 0),
    ...(cached !== undefined && { cached }),
    ...(reasoning !== undefined && { reasoning }),
  };
};

export const usageIn = (chunk: JsonObject, choice: JsonObject | undefined): Usage | undefined => {
  const usage = objectIn(chunk.usage) ?? objectIn(choice?.usage) ?? objectIn(objectIn(chunk.x_groq)?.usage);
  return usage && usageOf(usage);
};

const FINISHES: Readonly<Record<string, FinishReason | 'error'>> = {
  stop: 'stop',
  eos: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  tool_calls: 'tool_calls',
  tool_call: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
  safety: 'content_filter',
  sensitive: 'content_filter',
  refusal: 'content_filter',
  error: 'error',
  abort: 'error',
  network_error: 'error',
  insufficient_system_resource: 'error',
};

const MAX_WORD = 64;

export interface Finish {
  readonly reason: FinishReason | 'error';
  /** A word that is not known; such an answer counts as complete. */
  readonly detail?: string;
}

export const finishIn = (choice: JsonObject): Finish | undefined => {
  const word = textIn(choice.finish_reason);
  if (word === undefined) return undefined;
  const known = Object.hasOwn(FINISHES, word.toLowerCase()) ? FINISHES[word.toLowerCase()] : undefined;
  return known ? { reason: known } : { reason: 'stop', detail: word.slice(0, MAX_WORD) };
};
