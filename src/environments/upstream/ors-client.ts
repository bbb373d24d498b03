import { setMaxListeners } from 'node:events';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { Agent } from 'undici';
import { objectIn, textIn } from '../../models/json.ts';
import { parseRetryAfter, type RetryRules, retryDelay } from '../../models/retry.ts';
import { concealing } from '../../tools/mcp/secrets.ts';
import { EnvironmentError } from '../environment.ts';
import { pause } from '../pause.ts';
import { type ExchangeRequest, exchange, Lost } from './exchange.ts';
import { AWAY, away, detailIn, refusalOf } from './refusal.ts';

export interface OrsClientOptions {
  /** With or without a path. */
  readonly baseUrl: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What must not be seen of what the upstream says. */
  readonly secrets?: readonly string[];
  readonly connectMs: number;
  readonly requestMs: number;
  readonly retries: RetryRules;
  readonly now: () => number;
  readonly random?: () => number;
}

/** A request whose answer is read as a whole. */
export interface PlainRequest {
  readonly method: 'GET' | 'POST';
  /** Behind the base URL, with a slash. */
  readonly path: string;
  readonly sid?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** Waits for the setup: no time limit, and what was held for long and then cut is asked again without end. */
  readonly patient?: boolean;
  /** Whether an answer other than 2xx is wanted too; `attempt` counts from 0. */
  settles?(answer: PlainAnswer, attempt: number): boolean;
}

export interface PlainAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
  readonly retryAfterMs?: number;
}

/** All the tasks of a split may be much. */
const MAX_BYTES = 64 * 1_048_576;
/** Servers close connections that are not used; of a call that meets this nobody knows what became of it. */
const KEEP_MS = 2_000;
/** What was held for so long was not refused: something on the way has no patience. */
const HELD_MS = 5_000;
/** These are made by the connection itself. */
const OWN = new Set(['connection', 'content-length', 'expect', 'host', 'keep-alive', 'transfer-encoding', 'upgrade']);

const checkedHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([given, value]) => {
      const name = given.toLowerCase();
      validateHeaderName(name);
      validateHeaderValue(name, value);
      if (OWN.has(name)) throw new Error(`the header ${name} cannot be set`);
      return [name, value];
    }),
  );

/** One ORS server: its address, its connections, and plain requests to it. */
export class OrsClient {
  /** Whether the server has said that it runs a call of one `Idempotency-Key` once. */
  honoursKeys = false;
  /** Takes the gateway's own secrets out of what the upstream says. */
  readonly conceal: (text: string) => string;
  private readonly options: OrsClientOptions;
  private readonly origin: string;
  private readonly base: string;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly pool: Agent;

  constructor(options: OrsClientOptions) {
    const { origin, pathname, search } = new URL(options.baseUrl);
    if (search !== '') throw new Error('the address of an upstream has no query');
    this.options = options;
    this.origin = origin;
    this.base = pathname.replace(/\/+$/, '');
    this.headers = {
      ...checkedHeaders(options.headers ?? {}),
      'accept-encoding': 'identity',
      'user-agent': 'sluice',
    };
    this.conceal = concealing(options.secrets ?? []);
    this.pool = new Agent({
      connect: { timeout: options.connectMs },
      pipelining: 1,
      keepAliveTimeout: KEEP_MS,
      keepAliveMaxTimeout: KEEP_MS,
    });
  }

  /** A request with this server's address and headers. */
  exchange(request: Omit<ExchangeRequest, 'origin'>): Promise<void> {
    const { origin, base, headers } = this;
    return exchange(this.pool, {
      ...request,
      ...{ origin, path: `${base}${request.path}`, headers: { ...headers, ...request.headers } },
      head: (status, answered) => {
        // Said with the answer to `create` already: the very first call may be lost before its own is there.
        if (answered['x-sluice-idempotency'] === 'honoured') this.honoursKeys = true;
        request.head(status, answered);
      },
      data: (bytes) => request.data(bytes),
    });
  }

  /** Sent once. Throws `Lost`, or the reason of the signal. */
  async send({ method, path, sid, headers, body, signal, patient = false }: PlainRequest): Promise<PlainAnswer> {
    signal.throwIfAborted();
    const pieces: Buffer[] = [];
    let size = 0;
    let answer: Omit<PlainAnswer, 'text'> = { status: 0, contentType: '' };
    const late = new AbortController();
    const timer = patient ? undefined : setTimeout(() => late.abort(new Lost(true, true)), this.options.requestMs);
    const stop = (): void => late.abort(signal.reason);
    setMaxListeners(0, signal);
    signal.addEventListener('abort', stop);
    try {
      await this.exchange({
        ...{ method, path, headMs: 0, silentMs: 0, signal: late.signal },
        headers: {
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(sid !== undefined && { 'x-session-id': sid }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        head: (status, answered) => {
          const retryAfterMs = parseRetryAfter(answered['retry-after'], Date.now());
          const contentType = String(answered['content-type'] ?? '');
          answer = { status, contentType, ...(retryAfterMs !== undefined && { retryAfterMs }) };
        },
        data: (bytes) => {
          size += bytes.length;
          if (size > MAX_BYTES) throw new EnvironmentError('failed', "The upstream's answer is too large.");
          pieces.push(bytes);
          return false;
        },
      });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
    return { ...answer, text: Buffer.concat(pieces).toString() };
  }

  /** Asked again while the upstream is away, a few times. Only for what may be done twice. */
  async ask(request: PlainRequest): Promise<PlainAnswer> {
    const { now, retries, random } = this.options;
    for (let attempt = 0; ; attempt++) {
      const begun = now();
      const tried = await this.attempt(request, attempt);
      if ('answer' in tried) return tried.answer;
      if (request.patient && tried.reached && now() - begun > HELD_MS) attempt = 0;
      const delay = tried.again ? retryDelay(attempt, tried.retryAfterMs, retries, random) : undefined;
      if (delay === undefined) throw tried.error;
      await pause(delay, request.signal);
    }
  }

  /** What an answer other than 2xx means. */
  refusal({ status, text }: PlainAnswer, episode: boolean): EnvironmentError {
    return refusalOf({ status, detail: this.conceal(detailIn(text)), episode });
  }

  /** Closes all connections, whatever is on them. */
  async close(): Promise<void> {
    await this.pool.destroy();
  }

  private async attempt(request: PlainRequest, attempt: number) {
    try {
      const answer = await this.send(request);
      const { status, retryAfterMs } = answer;
      if ((status >= 200 && status < 300) || request.settles?.(answer, attempt)) return { answer };
      const error = this.refusal(answer, request.sid !== undefined);
      return { error, again: AWAY.has(status), reached: true, retryAfterMs };
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      return { error: unreachable(error), again: !error.silent, reached: error.sent };
    }
  }
}

/** A lost request in words, with the reason if it has a name. */
export const unreachable = (lost: Lost): EnvironmentError => {
  const code = textIn(objectIn(lost.cause)?.code);
  return away(code ?? lost.message, lost);
};
