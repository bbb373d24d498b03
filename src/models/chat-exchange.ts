import type { IncomingMessage } from 'node:http';
import type { ChatStream } from './chat-stream.ts';
import type { EventPipe } from './event-pipe.ts';
import { ModelError } from './model-error.ts';
import { Patience } from './patience.ts';

export interface ChatExchangeOptions {
  readonly response: IncomingMessage;
  readonly stream: ChatStream;
  readonly pipe: EventPipe;
  /** So long the backend may be silent; a comment is a sign of life. */
  readonly idleMs: number;
  /** So long after the reason of its end: the usage may follow, or nothing at all. */
  readonly lingerMs: number;
}

/** After its end a body may still be closed in order, so that the next request finds the connection open. */
const TIDY_MS = 1_000;

/** Reads an answer's body into the pipe, at the pace of whoever reads there. */
export class ChatExchange {
  private readonly options: ChatExchangeOptions;
  private patience: Patience | undefined;
  private lingering = false;
  private over = false;

  constructor(options: ChatExchangeOptions) {
    this.options = options;
    const { response } = options;
    response.on('data', (bytes: Buffer) => this.data(bytes));
    response.once('close', () => this.closed());
    this.watch();
  }

  pause(): void {
    // Silence is ours now, not the backend's.
    this.patience?.end();
    this.options.response.pause();
  }

  resume(): void {
    if (this.over) return;
    this.watch();
    this.options.response.resume();
  }

  private data(bytes: Buffer): void {
    if (this.over) return;
    const { stream, response } = this.options;
    this.attempt(() => stream.feed(bytes));
    if (this.over || response.isPaused()) return;
    if (stream.complete && !this.lingering) this.watch();
    else this.patience?.renew();
  }

  /** The last bytes have come, or the connection is gone. */
  private closed(): void {
    const cut = !this.options.response.complete;
    if (!this.over) this.attempt(() => this.options.stream.end({ cut }));
    this.patience?.end();
  }

  private watch(): void {
    const { stream, idleMs, lingerMs } = this.options;
    this.lingering = stream.complete;
    const ms = this.over ? TIDY_MS : this.lingering ? Math.min(lingerMs, idleMs) : idleMs;
    this.patience?.end();
    this.patience = new Patience(ms, () => this.silence());
  }

  private silence(): void {
    const { stream, response, pipe, idleMs } = this.options;
    // An answer that is over was not closed in order; that must not keep its socket.
    if (!this.over && stream.complete) this.attempt(() => stream.end());
    if (!this.over) {
      const seconds = Math.round(idleMs / 100) / 10;
      pipe.fail(new ModelError('timeout', `The model's backend has been silent for ${seconds} seconds.`));
      this.over = true;
    }
    response.destroy();
  }

  private attempt(step: () => void): void {
    const { stream, pipe, response } = this.options;
    try {
      step();
    } catch (error) {
      this.over = true;
      pipe.fail(error);
      response.destroy();
      return;
    }
    if (!stream.done) return;
    this.over = true;
    pipe.end();
    if (response.complete) return;
    this.watch();
    response.resume();
  }
}
