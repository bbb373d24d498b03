import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type FetchLike,
  isJSONRPCNotification,
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
const KEEP_MS = 1_000;

/**
 * Messages over streamable HTTP or SSE. It adds to the SDK's transports what a gateway needs: a request whose answer
 * was cut off fails at once, answers have a greatest size, and errors carry a status and never a body.
 */
export class HttpTransport extends ServerTransport {
  private readonly options: HttpOptions;
  private readonly inner: SSEClientTransport | StreamableHTTPClientTransport;
  private readonly agent = new Agent({
    // By default an answer is given up after five minutes, and a tool may take longer.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_MS },
    // A server may close a connection in the moment in which it is used again. Of a call that meets this nobody knows
    // what became of it, so a connection is not kept for long.
    keepAliveTimeout: KEEP_MS,
    keepAliveMaxTimeout: KEEP_MS,
  });
  /** Which request is being sent, and later which one a stream belongs to, even when it is taken up again. */
  private readonly sending = new AsyncLocalStorage<string | number | undefined>();
  /** The streams that belong to requests without an answer. */
  private readonly streams = new Map<unknown, AbortController>();
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
    this.onclose?.();
    await this.agent.destroy().catch(() => {});
  }

  protected override async write(message: JSONRPCMessage): Promise<void> {
    const { inner } = this;
    if (inner instanceof SSEClientTransport) return inner.send(message);
    if (!isJSONRPCRequest(message)) {
      await inner.send(message);
      // Many servers never end the stream of a call that was cancelled.
      if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled') {
        this.forget(message.params?.requestId, true);
      }
      return;
    }
    const { id } = message;
    const stream = new AbortController();
    this.streams.set(id, stream);
    try {
      const options = { requestSignal: stream.signal, onRequestStreamEnd: () => this.lose(id, 'cut') };
      await this.sending.run(id, () => inner.send(message, options));
    } catch (error) {
      this.forget(id);
      throw error;
    }
  }

  protected override deliver(message: JSONRPCMessage): void {
    if (!('method' in message)) this.forget(message.id);
    super.deliver(message);
  }

  private forget(id: unknown, cut = false): void {
    if (cut) this.streams.get(id)?.abort();
    this.streams.delete(id);
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
        const overSse = this.inner instanceof SSEClientTransport;
        const lost = overSse ? this.onlyCall : id;
        if (lost !== undefined) this.lose(lost, 'too_large');
        if (overSse) void this.close(); // everything comes over this one stream, and it cannot be read on
      }),
    );
    return new Response(body, { status, statusText, headers: [...headers] });
  }
}
