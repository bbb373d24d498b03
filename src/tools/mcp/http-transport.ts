import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type FetchLike,
  isJSONRPCRequest,
  type JSONRPCMessage,
  SSEClientTransport,
  SseError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { Agent, fetch as request } from 'undici';
import type { HttpServerConfig } from './config.ts';
import { HttpStatus, NetworkFailure } from './http-error.ts';
import { sizeLimit } from './size-limit.ts';
import { ServerTransport } from './transport.ts';

export interface HttpOptions {
  readonly maxMessageBytes: number;
}

/** How long a server may take to let go of its session. */
const GOODBYE_MS = 1_000;
const CONNECT_MS = 10_000;

/**
 * Messages over streamable HTTP or SSE. It adds to the SDK's transports what a gateway needs: a request whose answer
 * was cut off fails at once, answers have a greatest size, and errors carry a status and never a body.
 */
export class HttpTransport extends ServerTransport {
  private readonly options: HttpOptions;
  private readonly inner: SSEClientTransport | StreamableHTTPClientTransport;
  // Not the times of the global one: it gives up an answer after five minutes, and a tool may take longer.
  private readonly agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_MS } });
  /** Which request is being sent, and later which one a stream belongs to, even when it is taken up again. */
  private readonly sending = new AsyncLocalStorage<string | number | undefined>();
  private open = false;
  private closed = false;

  constructor(config: HttpServerConfig, options: HttpOptions) {
    super();
    this.options = options;
    const settings = { requestInit: { headers: { ...config.headers } }, fetch: this.fetch };
    const url = new URL(config.url);
    this.inner =
      config.transport === 'sse'
        ? new SSEClientTransport(url, settings)
        : new StreamableHTTPClientTransport(url, settings);
    this.inner.onmessage = (message) => this.deliver(message);
    this.inner.onerror = (error) => this.failed(error);
  }

  get sessionId(): string | undefined {
    return 'sessionId' in this.inner ? this.inner.sessionId : undefined;
  }

  /** A 404 then means that the server has forgotten it. With SSE the address that is written to is the session. */
  get hasSession(): boolean {
    return this.open && (this.inner instanceof SSEClientTransport || this.sessionId !== undefined);
  }

  setProtocolVersion(version: string): void {
    this.inner.setProtocolVersion(version);
  }

  async start(): Promise<void> {
    await this.inner.start();
    this.open = true;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    try {
      if (this.inner instanceof StreamableHTTPClientTransport && this.sessionId !== undefined) {
        const late = new Promise<void>((resolve) => setTimeout(resolve, GOODBYE_MS).unref());
        await Promise.race([this.inner.terminateSession(), late]);
      }
    } catch {
      // It will forget the session by itself.
    }
    await this.inner.close().catch(() => {});
    await this.agent.destroy().catch(() => {});
    this.onclose?.();
  }

  protected override async write(message: JSONRPCMessage): Promise<void> {
    const id = isJSONRPCRequest(message) ? message.id : undefined;
    await this.sending.run(id, () =>
      this.inner instanceof StreamableHTTPClientTransport && id !== undefined
        ? this.inner.send(message, { onRequestStreamEnd: () => this.lose(id, 'cut') })
        : this.inner.send(message),
    );
  }

  private failed(error: Error): void {
    if (this.closed) return;
    this.onerror?.(error);
    // An event source connects again by itself, to a new session that knows nothing of us. It sets its timer for that
    // after it has told us, so it can only be stopped a moment later.
    if (this.open && error instanceof SseError) setImmediate(() => void this.close());
  }

  private readonly fetch: FetchLike = async (url, init) => {
    const { dispatcher: _, ...rest } = (init ?? {}) as RequestInit & { dispatcher?: unknown };
    let response: Response;
    try {
      // Two descriptions of the same thing: the platform's fetch is an undici, too.
      response = (await request(url, { ...rest, dispatcher: this.agent } as never)) as unknown as Response;
    } catch (error) {
      if (init?.signal?.aborted) throw error;
      throw new NetworkFailure(error);
    }
    if (init?.method === 'POST' && response.status >= 400) {
      await response.body?.cancel().catch(() => {});
      throw new HttpStatus(response.status);
    }
    return this.limited(response);
  };

  private limited(response: Response): Response {
    if (!response.body) return response;
    const { status, statusText, headers } = response;
    const events = headers.get('content-type')?.includes('text/event-stream') ?? false;
    const id = this.sending.getStore();
    const body = response.body.pipeThrough(
      sizeLimit(this.options.maxMessageBytes, events, () => {
        const lost = id ?? this.onlyWaiting;
        if (lost !== undefined) this.lose(lost, 'too_large');
      }),
    );
    return new Response(body, { status, statusText, headers: [...headers] });
  }
}
