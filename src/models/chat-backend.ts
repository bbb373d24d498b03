import { type IncomingMessage, validateHeaderValue } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { backendError, complaintInBody } from './backend-error.ts';
import { ChatExchange } from './chat-exchange.ts';
import { betterManners, type ChatManners, writeChatRequest } from './chat-request.ts';
import { ChatStream } from './chat-stream.ts';
import { EventPipe } from './event-pipe.ts';
import { agentFor, readText, sendRequest } from './http-request.ts';
import type { ModelBackend, ModelInfo, ModelRequest, StreamOptions } from './model.ts';
import { cancelled, ModelError } from './model-error.ts';
import { modelsIn } from './model-list.ts';
import { parseRetryAfter, RETRIED_STATUSES, type RetryRules, retryDelay } from './retry.ts';

export interface ChatBackendOptions {
  /** With or without `/v1` at its end. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** Sent with every request; they win over our own. */
  readonly headers?: Readonly<Record<string, string>>;
  /** To connect. Default 10,000. */
  readonly connectMs?: number;
  /** So long a backend may be silent in the middle of an answer. Default 120,000. */
  readonly idleMs?: number;
  /** So long it may think before it answers at all. Default: as `idleMs`. */
  readonly firstByteMs?: number;
  /** So long after its finish reason an answer may still be open. Default 2,000. */
  readonly lingerMs?: number;
  /** To list its models. Default 5,000. */
  readonly listMs?: number;
  readonly retry?: RetryRules;
  /** Of one line of an answer, in characters. Default 4 Mi. */
  readonly maxLine?: number;
  /** Of an answer. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Of a request. Default 32 MiB. */
  readonly maxRequestBytes?: number;
  /** It failed, and will be asked again after so long. */
  readonly retried?: (error: ModelError, delayMs: number) => void;
  readonly now?: () => number;
  readonly random?: () => number;
}

/** Of the body of an error. */
const MAX_ERROR_BYTES = 65_536;
const ERROR_MS = 5_000;
/** A header's value that is shorter is rather a word that errors may hold than a key. */
const MIN_SECRET = 8;
const MAX_LIST_BYTES = 4 * 2 ** 20;
const MAX_REQUEST_BYTES = 32 * 2 ** 20;
/** Models for which something was learnt; a client may name any. */
const MAX_LEARNT = 1_000;

/** Versions stand in the path already where a backend has its own. */
const apiUrl = (baseUrl: string): URL => {
  const url = new URL(baseUrl);
  if (!/^https?:$/.test(url.protocol)) throw new Error('The address of a model backend begins with http or https.');
  const path = url.pathname.replace(/\/+$/, '');
  url.pathname = path.split('/').some((segment) => /^v\d/.test(segment)) ? path : `${path}/v1`;
  return url;
};

/** One server that speaks Chat Completions. */
export class ChatBackend implements ModelBackend {
  private readonly options: ChatBackendOptions;
  private readonly base: URL;
  private readonly agent: ReturnType<typeof agentFor>;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly secrets: readonly string[];
  /** What it does not take, found out by being refused once. */
  private withoutUsage = false;
  private readonly completionTokens = new Set<string>();
  private readonly now: () => number;

  constructor(options: ChatBackendOptions) {
    const { baseUrl, headers = {} } = options;
    const apiKey = options.apiKey?.trim() ?? '';
    this.options = options;
    this.base = apiUrl(baseUrl);
    this.agent = agentFor(this.base);
    this.now = options.now ?? Date.now;
    this.headers = {
      accept: 'text/event-stream, application/json',
      'accept-encoding': 'identity',
      'user-agent': 'sluice',
      ...(apiKey !== '' && { authorization: `Bearer ${apiKey}` }),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    };
    for (const [name, value] of Object.entries(this.headers)) validateHeaderValue(name, value);
    const sent = Object.values(headers).flatMap((value) => [value, ...value.split(/\s+/)]);
    this.secrets = [
      apiKey,
      decodeURIComponent(this.base.password),
      ...sent.filter((word) => word.length >= MIN_SECRET),
    ];
  }

  stream(request: ModelRequest, { signal }: StreamOptions = {}): EventPipe {
    const closing = new AbortController();
    let exchange: ChatExchange | undefined;
    const pipe: EventPipe = new EventPipe(
      {
        start: () => {
          this.open(request, closing.signal).then(
            (response) => {
              exchange = this.exchange(request, response, pipe);
            },
            (error) => pipe.fail(error),
          );
        },
        stop: () => closing.abort(),
        pause: () => exchange?.pause(),
        resume: () => exchange?.resume(),
      },
      signal,
    );
    return pipe;
  }

  async models({ signal }: StreamOptions = {}): Promise<readonly ModelInfo[]> {
    const { listMs = 5_000 } = this.options;
    const limit = AbortSignal.timeout(listMs);
    try {
      const response = await this.send('GET', '/models', undefined, signal ? AbortSignal.any([signal, limit]) : limit);
      if (response.statusCode !== 200) throw await this.refusal(response);
      return modelsIn(await readText(response, MAX_LIST_BYTES, listMs));
    } catch (error) {
      if (signal?.aborted) throw cancelled();
      if (limit.aborted) throw new ModelError('timeout', "The model's backend did not list its models in time.");
      throw error;
    }
  }

  /** Closes all connections: answers that are being read break off. */
  close(): void {
    this.agent.destroy();
  }

  private exchange(request: ModelRequest, response: IncomingMessage, pipe: EventPipe): ChatExchange {
    const { idleMs = 120_000, lingerMs = 2_000, maxLine, maxBytes } = this.options;
    const stream = new ChatStream({
      ...{ model: request.model, secrets: this.secrets, now: this.now },
      emit: (event) => pipe.push(event),
      ...(maxLine !== undefined && { maxLine }),
      ...(maxBytes !== undefined && { maxBytes }),
    });
    return new ChatExchange({ response, stream, pipe, idleMs, lingerMs });
  }

  /** An answer that begins well; asks again as long as that makes sense. */
  private async open(request: ModelRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const { retry = {}, retried, random } = this.options;
    for (let attempt = 0; ; ) {
      const manners = this.manners(request.model);
      try {
        return await this.ask(request, manners, signal);
      } catch (error) {
        if (signal.aborted || !(error instanceof ModelError)) throw error;
        if (error.status === 400 || error.status === 422) {
          if (!this.learn(request.model, manners, error.message)) throw error;
          continue; // at most once for each thing that can be learnt
        }
        if (!error.retryable || !this.isRetried(error)) throw error;
        const delay = retryDelay(attempt++, error.retryAfterMs, retry, random);
        if (delay === undefined) throw error;
        retried?.(error, delay);
        await sleep(delay, undefined, { signal });
      }
    }
  }

  private isRetried({ status, code }: ModelError): boolean {
    return status === undefined ? code === 'unavailable' : RETRIED_STATUSES.has(status);
  }

  private async ask(request: ModelRequest, manners: ChatManners, signal: AbortSignal): Promise<IncomingMessage> {
    const { maxRequestBytes = MAX_REQUEST_BYTES } = this.options;
    const body = writeChatRequest(request, manners);
    if (Buffer.byteLength(body) > maxRequestBytes) {
      throw new ModelError('too_large', `The request is larger than the ${maxRequestBytes} bytes that are allowed.`);
    }
    const response = await this.send('POST', '/chat/completions', body, signal);
    const { statusCode = 0, headers } = response;
    if (statusCode < 200 || statusCode > 299) throw await this.refusal(response);
    const coding = headers['content-encoding'] ?? 'identity';
    if (coding === 'identity') return response;
    response.destroy();
    throw new ModelError('bad_answer', `The model's backend answered in the encoding ${coding.slice(0, 20)}.`);
  }

  private send(method: 'GET' | 'POST', path: string, body: string | undefined, signal: AbortSignal) {
    const { connectMs = 10_000, idleMs = 120_000, firstByteMs = idleMs } = this.options;
    const url = new URL(this.base);
    url.pathname += path;
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const headers = { ...this.headers, ...(body !== undefined && { 'content-type': 'application/json' }), ...length };
    const sent = { method, url, headers, agent: this.agent, connectMs, firstByteMs, signal };
    return sendRequest(body === undefined ? sent : { ...sent, body });
  }

  private async refusal(response: IncomingMessage): Promise<ModelError> {
    const { statusCode: status = 0, headers } = response;
    const complaint = complaintInBody(await readText(response, MAX_ERROR_BYTES, ERROR_MS));
    const retryAfterMs = parseRetryAfter(headers['retry-after'], this.now());
    const origin = { status, secrets: this.secrets, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    return backendError(complaint, origin);
  }

  private manners(model: string): ChatManners {
    return { withoutUsage: this.withoutUsage, completionTokens: this.completionTokens.has(model) };
  }

  /** Whether the refusal tells how to do better. */
  private learn(model: string, used: ChatManners, message: string): boolean {
    const better = betterManners(message, used);
    if (!better) return false;
    this.withoutUsage ||= better.withoutUsage;
    if (better.completionTokens) {
      if (this.completionTokens.size >= MAX_LEARNT) this.completionTokens.clear();
      this.completionTokens.add(model);
    }
    return true;
  }
}
