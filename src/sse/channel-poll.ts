import type { ServerResponse } from 'node:http';
import type { Encoder } from '../streams/entry.ts';
import type { Batch } from '../streams/group.ts';
import type { Following, Hub } from '../streams/hub.ts';
import type { Resync, Sink } from '../streams/sink.ts';
import type { Drainable } from './drainable.ts';

export interface PolledChannels {
  /** Each as a JSON text. */
  readonly events: readonly string[];
  readonly resyncs: readonly Resync[];
  /** What an id carries behind its prefix; undefined: the store could not be asked. */
  readonly position: string | undefined;
}

export interface ChannelPollOptions {
  readonly hub: Hub;
  readonly names: readonly string[];
  readonly patterns: readonly string[];
  readonly granted: readonly string[];
  readonly hidden: readonly string[];
  readonly cursor: string | undefined;
  readonly waitMs: number;
}

/** Where an event and its position stand in the bytes of a poll: a position is never longer than a line. */
const SEPARATOR = '\n';

/** Writes events for polls: two lines each, the position and the JSON, which has no line ends of its own. */
export const pollEncoder = (json: (...event: Parameters<Encoder['encode']>) => string): Encoder => ({
  encode: (event, uuid, line) => Buffer.from(line + SEPARATOR + json(event, uuid, line) + SEPARATOR),
});

/** What one answer holds; the next one goes on from there. */
const MOST_EVENTS = 1_000;
const MOST_BYTES = 4 * 1024 * 1024;
/** How long a store may take to say where it stands. */
const PATIENCE_MS = 5_000;

/**
 * A stream for those who cannot follow one: it answers once, as soon as there is something to say, and is asked again
 * with the position it gave. The same follower as behind an event stream, so it is as exact.
 */
export class ChannelPoll implements Sink, Drainable {
  private readonly texts: string[] = [];
  private readonly resyncs: Resync[] = [];
  private readonly following: Following;
  private bytes = 0;
  private last: string | undefined;
  private timer: NodeJS.Timeout;
  private late = false;
  private looking = false;
  private answer: (polled: PolledChannels | undefined) => void = () => {};
  /** Undefined: the client has left. */
  readonly answered: Promise<PolledChannels | undefined>;

  constructor(res: ServerResponse, encoder: Encoder, options: ChannelPollOptions) {
    const { hub, names, patterns, granted, hidden, cursor, waitMs } = options;
    this.answered = new Promise((resolve) => {
      this.answer = resolve;
    });
    this.timer = setTimeout(() => this.timeIsOver(), waitMs);
    res.once('close', () => this.over(undefined));
    const wanted = { names, patterns, granted, hidden, ...(cursor !== undefined && { cursor }) };
    this.following = hub.follow({ ...wanted, encoder, sink: this });
  }

  connected(): void {}

  drain(): void {
    this.finish();
  }

  level(): void {
    if (this.late || this.resyncs.length > 0) this.look();
  }

  resync(notice: Resync): void {
    this.resyncs.push(notice);
    this.look();
  }

  room(): number {
    return MOST_EVENTS;
  }

  events({ bytes }: Batch): boolean {
    const lines = bytes.toString().split(SEPARATOR);
    for (let i = 0; i + 1 < lines.length; i += 2) {
      this.last = lines[i];
      this.texts.push(lines[i + 1] as string);
    }
    this.bytes += bytes.length;
    this.look();
    return this.texts.length < MOST_EVENTS && this.bytes < MOST_BYTES;
  }

  /** Whatever comes in this turn belongs to the answer. A notice waits for what is kept, or for the news that nothing is. */
  private look(): void {
    if (this.looking) return;
    this.looking = true;
    setImmediate(() => {
      this.looking = false;
      if (this.texts.length > 0 || this.following.position() !== undefined) this.finish();
    });
  }

  /** Who does not want to wait still wants an answer: from where it goes on, and that takes a moment to know. */
  private timeIsOver(): void {
    this.late = true;
    if (this.following.position() !== undefined || this.texts.length > 0) this.finish();
    else this.timer = setTimeout(() => this.finish(), PATIENCE_MS);
  }

  private finish(): void {
    const level = this.following.position(); // may bring events
    const position = this.texts.length > 0 ? this.last : level;
    // Without a position a notice would have to be told again; it will be.
    const resyncs = position === undefined ? [] : this.resyncs;
    this.over({ events: this.texts, resyncs, position });
  }

  private over(polled: PolledChannels | undefined): void {
    clearTimeout(this.timer);
    this.following.close();
    this.answer(polled);
  }
}
