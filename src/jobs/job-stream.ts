import type { ServerResponse } from 'node:http';
import type { CloseReason } from '../sse/closing.ts';
import { Connection } from '../sse/connection.ts';
import { framed } from '../sse/framing.ts';
import type { TimerWheel } from '../sse/timer-wheel.ts';
import type { JobDialect } from './dialect.ts';
import type { JobFacts } from './job.ts';
import type { JobReader } from './reader.ts';

export interface JobStreamOptions {
  readonly dialect: JobDialect;
  readonly wheel: TimerWheel;
  readonly heartbeatSeconds: number;
  /** Heartbeats only after so long without an event, instead of all the time. */
  readonly heartbeatWhenIdle?: boolean;
  readonly slowMs: number;
  readonly expiresAt: number;
  /** The position that the client gave, as it gave it. */
  readonly lastEventId?: string;
  /**
   * One frame per write and one write per turn of the event loop, and no faster than a client reads: some take what one
   * read brings for whole frames, and a read ends in the middle of one as soon as 64 KiB wait for it.
   */
  readonly frameByFrame?: boolean;
  /** How long the stream stays open behind the terminal event, for the client to close it. */
  readonly lingerMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly closed: (reason: CloseReason) => void;
}

/** Events that leave in one write. */
const AT_ONCE = 256;

/** What may leave frame by frame without a pause, and what may be added to it in a millisecond. */
const BURST_BYTES = 16 * 1024;
const BYTES_PER_MS = 4 * 1024;

/** A connection that follows one job. */
export class JobStream {
  private readonly options: JobStreamOptions;
  private connection: Connection | undefined;
  private reader: JobReader | undefined;
  private opened = false;
  private missing = false;
  private blocked = false;
  private turnComes = false;
  private credit = BURST_BYTES;
  private creditAt = 0;
  private lingering: NodeJS.Timeout | undefined;
  private over = false;

  /** The reader may come later, while the store is away; undefined: there is no such job any more. */
  constructor(res: ServerResponse, reader: JobReader | Promise<JobReader | undefined>, options: JobStreamOptions) {
    this.options = options;
    const { wheel, dialect, heartbeatSeconds, heartbeatWhenIdle = false, slowMs, expiresAt, headers = {} } = options;
    const connection = {
      ...{ wheel, heartbeat: dialect.heartbeat, heartbeatSeconds, heartbeatWhenIdle, slowMs, expiresAt },
      drained: () => {
        this.blocked = false;
        this.pump();
      },
      closed: (reason: CloseReason) => this.closed(reason),
    };
    // A reader that is there already has something to say together with the headers.
    if (reader instanceof Promise) void reader.then((found) => this.begin(found));
    else this.begin(reader);
    Connection.open(res, connection, headers, (opened) => {
      this.connection = opened;
      if (this.missing) opened.end('finished');
      else this.pump();
    });
  }

  /** Ends it in such a way that the client comes back, not before `retryMs`. */
  drain(retryMs: number): void {
    this.connection?.end('draining', this.options.dialect.closing?.(retryMs));
  }

  /** Whose stream this is, once that is known. */
  get facts(): JobFacts | undefined {
    return this.reader?.track.facts;
  }

  private begin(reader: JobReader | undefined): void {
    if (this.over) {
      reader?.close();
    } else if (reader) {
      this.reader = reader;
      reader.onWake(() => this.pump());
      this.pump();
    } else {
      this.missing = true;
      this.connection?.end('finished'); // who comes back is told
    }
  }

  private pump(): void {
    if (this.turnComes) return;
    const { frameByFrame } = this.options;
    while (this.step()) {
      if (!frameByFrame) continue;
      this.turnComes = true;
      const goOn = (): void => {
        this.turnComes = false;
        this.pump();
      };
      if (this.credit > 0) setImmediate(goOn);
      else setTimeout(goOn, 1);
      return;
    }
  }

  /** Writes once; false: nothing to write, or no room for more. */
  private step(): boolean {
    const { connection, reader } = this;
    const facts = reader?.track.facts;
    if (!connection || !reader || !facts || this.blocked || this.over) return false;
    const { dialect, frameByFrame, lingerMs = 0 } = this.options;
    if (!this.opened) {
      this.opened = true;
      const text = dialect.opening?.(facts);
      if (text !== undefined) return this.write(framed(connection.framing, text));
    }
    const taken = reader.take(frameByFrame ? 1 : AT_ONCE);
    if (!taken) return false;
    if (taken.what === 'end') {
      this.end();
      return false;
    }
    if (taken.what === 'reset')
      return this.write(
        framed(connection.framing, dialect.reset(taken.reset, facts, this.options.lastEventId ?? null)),
      );
    const encoder = dialect.encoders[connection.framing];
    const [only, ...more] = taken.events.map((event) => event.encode(encoder));
    if (only === undefined) return false;
    const bytes = more.length === 0 ? only : Buffer.concat([only, ...more]);
    if (lingerMs > 0 || !taken.events.at(-1)?.end) return this.write(bytes);
    this.blocked = !connection.finish(bytes);
    return false;
  }

  private write(bytes: Buffer): boolean {
    if (this.options.frameByFrame) {
      const now = performance.now();
      // A longer pause brings no more: who shares the machine with a gateway that was held up was held up too.
      const earned = Math.min(1, now - this.creditAt) * BYTES_PER_MS;
      this.credit = Math.min(BURST_BYTES, this.credit + earned) - bytes.length;
      this.creditAt = now;
    }
    this.blocked = !(this.connection?.write(bytes) ?? false);
    return !this.blocked;
  }

  private end(): void {
    const { lingerMs = 0 } = this.options;
    if (lingerMs === 0) this.connection?.end('finished');
    else this.lingering ??= setTimeout(() => this.connection?.end('finished'), lingerMs).unref();
  }

  private closed(reason: CloseReason): void {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.lingering);
    this.reader?.close();
    this.options.closed(reason);
  }
}
