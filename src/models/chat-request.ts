import type { Content, ModelMessage, ModelRequest, ToolChoice, ToolSpec } from './model.ts';

/** What a backend, or one of its models, has been found not to take. */
export interface ChatManners {
  /** It refuses `stream_options`. */
  readonly withoutUsage: boolean;
  /** It calls `max_tokens` `max_completion_tokens`. */
  readonly completionTokens: boolean;
}

/** Not every backend takes parts where a text would do. */
const written = (content: Content | null | undefined): unknown => {
  if (!Array.isArray(content)) return content ?? null;
  const parts: readonly { type: string; text?: unknown }[] = content;
  return parts.every(({ type }) => type === 'text') ? parts.map(({ text }) => text).join('\n') : content;
};

const writeMessage = (message: ModelMessage): unknown => {
  // Only the newest models know developers, and those take a system message for the same.
  const role = message.role === 'developer' ? 'system' : message.role;
  return { ...message, role, content: written(message.content) };
};

const writeTool = ({ name, description, parameters, strict }: ToolSpec): unknown => ({
  type: 'function',
  function: {
    name,
    ...(description !== undefined && { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    ...(strict !== undefined && { strict }),
  },
});

const writeChoice = (choice: ToolChoice): unknown =>
  typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } };

/** Several answers to one request would be paid for and thrown away. */
const withoutOwn = ({ n: _, ...extra }: Readonly<Record<string, unknown>>): Record<string, unknown> => extra;

/** The body of `POST /chat/completions`. */
export const writeChatRequest = (request: ModelRequest, manners: ChatManners): string => {
  const { tools = [], toolChoice, parallelToolCalls, maxTokens, reasoningEffort, responseFormat } = request;
  const { temperature, topP, stop, seed, user, extra = {} } = request;
  return JSON.stringify({
    ...withoutOwn(extra),
    model: request.model,
    messages: request.messages.map(writeMessage),
    stream: true,
    stream_options: manners.withoutUsage ? undefined : { include_usage: true },
    ...(tools.length > 0 && {
      tools: tools.map(writeTool),
      ...(toolChoice !== undefined && { tool_choice: writeChoice(toolChoice) }),
      ...(parallelToolCalls !== undefined && { parallel_tool_calls: parallelToolCalls }),
    }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(maxTokens !== undefined && { [manners.completionTokens ? 'max_completion_tokens' : 'max_tokens']: maxTokens }),
    ...(stop !== undefined && { stop }),
    ...(reasoningEffort !== undefined && { reasoning_effort: reasoningEffort }),
    ...(responseFormat !== undefined && { response_format: responseFormat }),
    ...(seed !== undefined && { seed }),
    ...(user !== undefined && { user }),
  });
};

/** What to do without, after a backend has refused a request with this message; undefined if that is not the reason. */
export const betterManners = (message: string, manners: ChatManners): ChatManners | undefined => {
  if (!manners.withoutUsage && /stream_options|include_usage/i.test(message)) return { ...manners, withoutUsage: true };
  if (!manners.completionTokens && /max_completion_tokens/i.test(message))
    return { ...manners, completionTokens: true };
  return undefined;
};
