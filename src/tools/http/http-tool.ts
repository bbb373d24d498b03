import type { HttpToolSettings } from '../../config/structures.ts';
import { type JsonObject, type Schema, type Tool, type ToolContext, ToolError, type ToolResult } from '../tool.ts';
import { type GuardedAnswer, guardedRequest } from './guarded-request.ts';
import { textOf, UrlTemplate } from './url-template.ts';

const DEFAULTS = { timeoutSeconds: 30, maxBytes: 1_048_576, concurrency: 16 } as const;

/** Fields that have no place in the URL are its query, or the JSON body of those methods that have one. */
const withRest = (url: URL, method: string, rest: JsonObject): string | undefined => {
  if (method !== 'GET' && method !== 'DELETE') return JSON.stringify(rest);
  for (const [name, value] of Object.entries(rest)) {
    for (const item of Array.isArray(value) ? value : [value]) url.searchParams.append(name, textOf(item));
  }
  return undefined;
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const resultOf = ({ status, contentType, body }: GuardedAnswer, uri: string): ToolResult => {
  const isError = status >= 400;
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!isError && (type.startsWith('image/') || type.startsWith('audio/'))) {
    const kind = type.startsWith('image/') ? 'image' : 'audio';
    return { content: [{ type: kind, data: body.toString('base64'), mimeType: type }], isError };
  }
  const json = /[/+]json$/.test(type);
  if (!isError && type !== '' && !json && !/^text\/|[/+](xml|yaml|javascript)$/.test(type)) {
    return { content: [{ type: 'resource', uri, mimeType: type, blob: body.toString('base64') }], isError };
  }
  const text = body.toString();
  const structured = json ? parsed(text) : undefined;
  return {
    content: [{ type: 'text', text: isError ? `HTTP ${status}${text === '' ? '' : `: ${text}`}` : text }],
    ...(structured !== undefined && { structured }),
    isError,
  };
};

/** An HTTP endpoint as a tool. Throws one sentence if the settings make no tool. `expand` puts the environment into a text. */
export const httpTool = (name: string, settings: HttpToolSettings, expand: (text: string) => string): Tool => {
  const { method = 'GET', input, output, approval = 'never', allowPrivate = false } = settings;
  const { timeoutSeconds = DEFAULTS.timeoutSeconds, maxBytes = DEFAULTS.maxBytes, concurrency } = settings;
  const template = new UrlTemplate(expand(settings.url));
  const headers = Object.fromEntries(
    Object.entries(settings.headers ?? {}).map(([key, value]) => [key.toLowerCase(), expand(value)]),
  );
  const inputSchema: Schema = input ?? {
    type: 'object',
    properties: Object.fromEntries(template.fields.map((field) => [field, { type: 'string' }])),
    required: [...new Set(template.fields)],
  };
  return {
    name,
    description: settings.description ?? '',
    inputSchema,
    ...(output && { outputSchema: output }),
    source: { kind: 'http', name: 'http' },
    timeoutMs: timeoutSeconds * 1_000,
    concurrency: concurrency ?? DEFAULTS.concurrency,
    approval,
    call: async (fields: JsonObject, { signal }: ToolContext): Promise<ToolResult> => {
      const { url, rest } = template.fill(fields);
      const body = withRest(url, method, rest);
      const sent = { accept: 'application/json, text/*;q=0.9, */*;q=0.5', ...headers };
      try {
        const answer = await guardedRequest({
          ...{ method, url, allowPrivate, maxBytes, signal },
          headers: body === undefined ? sent : { 'content-type': 'application/json', ...sent },
          ...(body !== undefined && { body }),
        });
        return resultOf(answer, url.href);
      } catch (error) {
        if (error instanceof ToolError) throw error;
        // The address may hold what the operator keeps to himself: only the host is told.
        const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
        throw new ToolError('unavailable', `${url.host} could not be reached: ${reason}.`, error);
      }
    },
  };
};
