import type { ServerResponse } from 'node:http';
import type { Batch } from '../streams/group.ts';
import type { Following, Hub } from '../streams/hub.ts';
import type { Resync, Sink } from '../streams/sink.ts';
import type { CloseReason } from './closing.ts';
import { Connection } from './connection.ts';
import type { ChannelDialect } from './dialect.ts';
import { framed } from './framing.ts';
import type { TimerWheel } from './timer-wheel.ts';

/** How fast a stream may be. Events beyond that are behind, never dropped. */
export interface Pace {
  /** How many may be sent at once. */
  room(): number;
  /** After so many were sent: how many ms to wait before more. */
  take(events: number): number;
}

/** A stream that has to wait does so for some events together, not for each. */
const LEAST_WAIT_MS = 50;

export interface ChannelStreamOptions {
  readonly hub: Hub;
  readonly wheel: TimerWheel;
  readonly dialect: ChannelDialect;
  readonly names: readonly string[];
  readonly patterns: readonly string[];
  /** What patterns may find. */
  readonly granted: readonly string[];
  /** What they never find. */
  readonly hidden: readonly string[];
  /** As the client asked for them, for the first frame. */
  readonly channels: readonly string[];
  readonly lastEventId: string | undefined;
  readonly heartbeatSeconds: number;
  readonly retryMs: number;
  readonly slowMs: number;
  readonly expiresAt: number;
  readonly pace: Pace;
  readonly headers?: Readonly<Record<string, string>>;
  readonly closed: (reason: CloseReason) => void;
}

/** A connection that follows channels. */
export class ChannelStream implements Sink {
  private readonly options: ChannelStreamOptions;
  private connection: Connection | undefined;
  private following: Following | undefined;
  /** Frames that leave with the next events, or at the end of this turn: one write. */
  private waiting: Buffer[] = [];
  private paused: NodeJS.Timeout | undefined;
  private blocked = false;
  private over = false;

  constructor(res: ServerResponse, options: ChannelStreamOptions) {
    this.options = options;
    const { wheel, dialect, heartbeatSeconds, slowMs, expiresAt, headers = {} } = options;
    const connection = {
      wheel,
      heartbeat: dialect.heartbeat,
      heartbeatSeconds,
      slowMs,
      expiresAt,
      drained: () => this.drained(),
      closed: (reason: CloseReason) => this.closed(reason),
    };
    Connection.open(res, connection, headers, (opened) => this.opened(opened));
  }

  /** Ends it in such a way that the client comes back, not before `retryMs`. */
  drain(retryMs: number): void {
    if (this.connection) this.connection.end('draining', this.options.dialect.closing(retryMs));
  }

  connected(position: string | undefined, resumed: boolean): void {
    const { dialect, channels, retryMs } = this.options;
    this.later(dialect.connected({ ...(position !== undefined && { position }), resumed, channels, retryMs }));
  }

  resync(notice: Resync): void {
    const { dialect, lastEventId = null } = this.options;
    this.later(dialect.resync({ ...notice, lastEventId }));
  }

  room(): number {
    return this.options.pace.room();
  }

  events(batch: Batch): boolean {
    this.blocked = !this.write(batch.bytes);
    const wait = this.options.pace.take(batch.events.length);
    if (wait > 0) {
      this.paused = setTimeout(
        () => {
          this.paused = undefined;
          this.goOn();
        },
        Math.max(wait, LEAST_WAIT_MS),
      );
    }
    return !this.blocked && wait <= 0;
  }

  private opened(connection: Connection): void {
    this.connection = connection;
    const { hub, dialect, names, patterns, granted, hidden, lastEventId } = this.options;
    this.following = hub.follow({
      names,
      patterns,
      granted,
      hidden,
      ...(lastEventId !== undefined && { cursor: lastEventId }),
      encoder: dialect.encoders[connection.framing],
      sink: this,
    });
  }

  private closed(reason: CloseReason): void {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.paused);
    this.following?.close();
    this.options.closed(reason);
  }

  private drained(): void {
    this.blocked = false;
    this.goOn();
  }

  private goOn(): void {
    if (!this.blocked && this.paused === undefined && !this.over) this.following?.resume();
  }

  private later(text: string): void {
    const { connection } = this;
    if (!connection) return;
    if (this.waiting.length === 0) {
      queueMicrotask(() => {
        if (this.waiting.length > 0) this.write();
      });
    }
    this.waiting.push(framed(connection.framing, text));
  }

  private write(bytes?: Buffer): boolean {
    const all = bytes ? [...this.waiting, bytes] : this.waiting;
    this.waiting = [];
    const [only] = all;
    return this.connection?.write(all.length === 1 ? (only as Buffer) : Buffer.concat(all)) ?? false;
  }
}
