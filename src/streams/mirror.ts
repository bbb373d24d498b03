import { Entry } from './entry.ts';
import type { Interest } from './interest.ts';
import type { ChannelLimits, StoredEvent } from './log.ts';
import { Tail } from './tail.ts';

/** A channel's mirror holds no more than this many bytes of data, whatever the channel's own size. */
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * The newest kept events of one channel, contiguous: everything of the channel after `floor` is here. Replays come from it,
 * so that a storm of reconnects does not become a storm on the store.
 */
export class Mirror {
  readonly channel: string;
  readonly interests = new Set<Interest>();
  /** Loaded and live; until then arriving events are set aside. */
  ready = false;
  /** The feed follows this channel by name. */
  followed = false;
  /** Named followers; one that only patterns reach has none. */
  followers = 0;
  idleSince: number | undefined;
  aside: StoredEvent[] = [];
  floor = 0;
  last = 0;
  private readonly limits: ChannelLimits;
  private readonly entries = new Tail<Entry>();
  private bytes = 0;

  constructor(channel: string, limits: ChannelLimits) {
    this.channel = channel;
    this.limits = limits;
  }

  /** No follower has named it: it is there because a pattern finds it. */
  get onlyByPattern(): boolean {
    return this.followers === 0 && this.idleSince === undefined;
  }

  get newestMs(): number {
    return this.entries.newest(1)[0]?.ms ?? 0;
  }

  /** Something between the last event here and this one has not arrived. On a live mirror that should never happen. */
  gapBefore(event: StoredEvent): boolean {
    // A forgotten predecessor is only an upper bound; while live nothing can have come in between.
    return event.prev > this.last && !(event.prevForgotten && this.ready);
  }

  take(event: StoredEvent, partition: number, epoch: number): Entry | undefined {
    if (event.seq <= this.last) return undefined;
    if (this.gapBefore(event)) this.restart(event.prev);
    const entry = new Entry(event, partition, epoch, this.last);
    this.last = event.seq;
    this.entries.push(entry);
    this.bytes += event.data.length;
    while (this.entries.length > this.limits.events || this.bytes > MAX_BYTES) {
      const gone = this.entries.shift();
      if (!gone) break;
      this.bytes -= gone.event.data.length;
      this.floor = gone.seq;
    }
    return entry;
  }

  /** Forgets everything: nothing is known before `last`. */
  restart(last: number): void {
    this.entries.clear();
    this.bytes = 0;
    this.floor = last;
    this.last = last;
  }

  /** What is kept after a number and not too old. */
  after(seq: number, now: number): Entry[] {
    const entries = this.entries.after(seq);
    const oldest = now - this.limits.ageMs;
    const young = entries.findIndex((entry) => entry.ms >= oldest);
    return young < 0 ? [] : young === 0 ? entries : entries.slice(young);
  }
}
