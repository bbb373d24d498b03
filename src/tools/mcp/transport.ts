import {
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';

/** Why a request gets no answer although the connection lives on. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';
  readonly reason: 'cut' | 'too_large';
  constructor(reason: 'cut' | 'too_large') {
    super(reason === 'cut' ? 'the connection was lost before the answer came' : 'the answer is too large');
    this.reason = reason;
  }
}

/** Of those that JSON-RPC leaves to implementations; what counts is the `AnswerLost` in the data. */
const LOST = -32_000;

/**
 * A connection that knows which requests still wait for an answer, so that one whose answer cannot come any more fails
 * at once and alone. The SDK's own transports leave it waiting for its time limit.
 */
export abstract class ServerTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Called for what belongs to a request, in its turn. The SDK's way is a moment slower than its way for answers: the
   * last step of a call would come after its result, and be lost. */
  onprogress?: (params: Readonly<Record<string, unknown>>) => void;
  /** Their methods. */
  private readonly waiting = new Map<string | number, string>();

  abstract start(): Promise<void>;
  abstract close(): Promise<void>;
  protected abstract write(message: JSONRPCMessage): Promise<void>;

  /** What is known about its end, to be put behind a sentence; empty if nothing. */
  get lastWords(): string {
    return '';
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (isJSONRPCRequest(message)) this.waiting.set(message.id, message.method);
    // Nobody waits for it any more, and many servers do not answer what was cancelled.
    if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled') {
      this.waiting.delete(message.params?.requestId as string | number);
    }
    try {
      await this.write(message);
    } catch (error) {
      if (isJSONRPCRequest(message)) this.waiting.delete(message.id);
      throw error;
    }
  }

  protected deliver(message: JSONRPCMessage): void {
    if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) {
      // Without this, every late answer to a cancelled call would be written out as an error.
      if (message.id === undefined || !this.waiting.delete(message.id)) return;
    }
    if (isJSONRPCNotification(message) && message.method === 'notifications/progress') {
      this.onprogress?.(message.params ?? {});
      return;
    }
    this.onmessage?.(message);
  }

  /** The answer to this request will not come. */
  protected lose(id: string | number, reason: AnswerLost['reason']): void {
    const data = new AnswerLost(reason);
    this.deliver({ jsonrpc: '2.0', id, error: { code: LOST, message: data.message, data } });
  }

  /**
   * The only call of a tool that waits, if there is just one: whose answer it must be that came without a readable id.
   * Everything else that is asked has small answers.
   */
  protected get onlyCall(): string | number | undefined {
    const calls = [...this.waiting].filter(([, method]) => method === 'tools/call');
    return calls.length === 1 ? calls[0]?.[0] : undefined;
  }

  protected isWaiting(id: string | number): boolean {
    return this.waiting.has(id);
  }
}
