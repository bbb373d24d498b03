import { Entry } from './entry.ts';
import type { StreamLog } from './log.ts';
import type { Position } from './position.ts';

export interface SharedPage {
  readonly epoch: number;
  readonly horizon: Position;
  readonly channels: ReadonlyMap<string, { readonly entries: readonly Entry[]; readonly last: number }>;
}

/** Of all channels of a page together, about; at least a few of each. */
const PAGE_EVENTS = 2_000;
const LEAST_EVENTS = 4;

/** Reads pages of the log. Equal pages are read, and their events encoded, once for all followers that wait for them. */
export class PageReader {
  private readonly log: StreamLog;
  private readonly pageEvents: number;
  private readonly reading = new Map<string, Promise<SharedPage>>();

  constructor(log: StreamLog, pageEvents = PAGE_EVENTS) {
    this.log = log;
    this.pageEvents = pageEvents;
  }

  read(partition: number, channels: readonly string[], after: Position): Promise<SharedPage> {
    const key = `${partition} ${after.ms}-${after.seq} ${channels.join()}`;
    let page = this.reading.get(key);
    if (!page) {
      const count = Math.max(LEAST_EVENTS, Math.floor(this.pageEvents / channels.length));
      page = this.load(partition, channels, after, count).finally(() => this.reading.delete(key));
      this.reading.set(key, page);
    }
    return page;
  }

  /** Everything that is kept of one channel after a number. */
  async readAll(partition: number, channel: string, after: number): Promise<readonly Entry[]> {
    const { events } = this.log.limitsOf(channel);
    const page = await this.load(partition, [channel], { ms: 0, seq: 0 }, Math.max(events, 1));
    return page.channels.get(channel)?.entries.filter(({ seq }) => seq > after) ?? [];
  }

  private async load(
    partition: number,
    channels: readonly string[],
    after: Position,
    count: number,
  ): Promise<SharedPage> {
    const page = await this.log.read(partition, channels, after, count);
    const shared = new Map<string, { entries: Entry[]; last: number }>();
    for (const [channel, { events, last }] of page.channels) {
      shared.set(channel, { entries: events.map((event) => new Entry(event, partition, page.epoch)), last });
    }
    return { epoch: page.epoch, horizon: page.horizon, channels: shared };
  }
}
