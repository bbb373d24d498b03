import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { CloseReason } from './closing.ts';
import { type Framing, framed } from './framing.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Ticker, TimerWheel } from './timer-wheel.ts';

export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-store, must-revalidate, no-transform',
  'X-Accel-Buffering': 'no',
};

export interface ConnectionOptions {
  readonly wheel: TimerWheel;
  readonly heartbeat: Heartbeat;
  readonly heartbeatSeconds: number;
  /** Only after so long without anything else. */
  readonly heartbeatWhenIdle?: boolean;
  /** A connection that takes nothing for this long is cut. */
  readonly slowMs: number;
  /** When the stream has to end, in ms since the epoch. */
  readonly expiresAt: number;
  /** It takes bytes again. */
  readonly drained: () => void;
  readonly closed: (reason: CloseReason) => void;
}

/**
 * One open stream: headers, bytes straight to the socket, heartbeats, back-pressure, the end. It has no queue: whoever
 * writes stops when `write` says so and goes on at `drained`.
 */
export class Connection implements Ticker {
  readonly framing: Framing;
  private readonly res: ServerResponse;
  private readonly socket: Socket;
  private readonly options: ConnectionOptions;
  private blockedSince: number | undefined;
  private beatAt: number;
  private ended = false;
  private readonly onDrain = (): void => {
    if (this.ended || this.blockedSince === undefined) return;
    this.blockedSince = undefined;
    this.setTimer(Date.now());
    this.options.drained();
  };
  private readonly onClose = (): void => this.over('client');

  private constructor(res: ServerResponse, socket: Socket, options: ConnectionOptions) {
    this.res = res;
    this.socket = socket;
    this.options = options;
    this.framing = res.chunkedEncoding ? 'chunked' : 'plain';
    // The first one comes a little early, so that connections of one storm do not beat together for ever.
    this.beatAt = Date.now() + options.heartbeatSeconds * (1 - Math.random() / 3) * 1_000;
    socket.setTimeout(0); // a quiet stream is not an idle socket
    socket.setNoDelay(true);
    socket.on('drain', this.onDrain);
    res.on('close', this.onClose);
    this.setTimer(Date.now());
  }

  /**
   * Sends the headers and hands over the connection, as soon as the response has its socket: a pipelined request waits for
   * those before it. Never for HEAD, which ends here.
   */
  static open(
    res: ServerResponse,
    options: ConnectionOptions,
    headers: Readonly<Record<string, string>>,
    opened: (connection: Connection) => void,
  ): void {
    if (res.destroyed) {
      options.closed('client'); // it has left while we were asking whether it may come in
      return;
    }
    res.writeHead(200, { ...STREAM_HEADERS, ...headers });
    if (res.req.method === 'HEAD') {
      res.end();
      options.closed('client');
      return;
    }
    const begin = (): void => {
      // `req.socket` may belong to another response by now; only the response's own counts.
      const { socket } = res;
      if (res.destroyed || !socket || socket.destroyed) {
        options.closed('client');
        return;
      }
      opened(new Connection(res, socket, options));
    };
    const { socket } = res;
    if (socket) {
      socket.cork(); // the headers leave together with what is there to be said at once
      res.flushHeaders();
      begin();
      socket.uncork();
      return;
    }
    res.flushHeaders();
    const gone = (): void => options.closed('client');
    res.once('close', gone);
    res.once('socket', () => {
      res.off('close', gone);
      setImmediate(begin); // the headers are written to the socket after this event
    });
  }

  /** False: it did not all leave; nothing more until `drained`. */
  write(bytes: Buffer): boolean {
    if (this.ended) return false;
    this.socket.write(bytes);
    // The timer stays where it is: when it comes it finds that it is too early.
    if (this.options.heartbeatWhenIdle) this.beatAt = Date.now() + this.options.heartbeatSeconds * 1_000;
    // The kernel usually takes everything at once; only what stays with us is back-pressure.
    if (!this.socket.writableNeedDrain || this.socket.writableLength === 0) return true;
    this.blockedSince ??= Date.now();
    this.setTimer(this.blockedSince);
    return false;
  }

  tick(nowMs: number): void {
    if (nowMs >= this.options.expiresAt) {
      this.end('token_expired');
    } else if (this.blockedSince !== undefined && nowMs - this.blockedSince >= this.options.slowMs) {
      this.cut();
    } else {
      if (this.blockedSince === undefined && nowMs >= this.beatAt) {
        this.beatAt = nowMs + this.options.heartbeatSeconds * 1_000;
        this.write(this.options.heartbeat.bytes(this.framing, nowMs));
      }
      if (!this.ended) this.setTimer(nowMs);
    }
  }

  private setTimer(nowMs: number): void {
    const next = this.blockedSince === undefined ? this.beatAt : this.blockedSince + this.options.slowMs;
    this.options.wheel.set(this, (Math.min(next, this.options.expiresAt) - nowMs) / 1_000);
  }

  /** The last bytes, and the end behind them in the same write. False: it did not all leave, and has not ended. */
  finish(bytes: Buffer): boolean {
    this.socket.cork();
    const left = this.write(bytes);
    if (left) this.end('finished');
    this.socket.uncork();
    return left;
  }

  /** Ends the stream in order; `last` is written before. */
  end(reason: CloseReason, last?: string): void {
    if (this.ended) return;
    if (last !== undefined) this.socket.write(framed(this.framing, last));
    this.over(reason);
    this.res.end();
    // Nothing may be asked on this connection again, and a reader that is behind still gets all that is on its way.
    if (reason === 'draining') this.socket.destroySoon();
  }

  /** A reader that does not read would never see an orderly end. */
  private cut(): void {
    this.over('slow');
    this.socket.destroy();
  }

  private over(reason: CloseReason): void {
    if (this.ended) return;
    this.ended = true;
    this.options.wheel.remove(this);
    this.socket.off('drain', this.onDrain);
    this.res.off('close', this.onClose);
    this.options.closed(reason);
  }
}
