import type { Encoder } from '../../src/streams/entry.ts';
import type { Hub } from '../../src/streams/hub.ts';
import type { Wanted } from '../../src/streams/interest.ts';
import type { NewEvent, StreamLog } from '../../src/streams/log.ts';
import type { Place } from '../../src/streams/position.ts';
import type { Resync } from '../../src/streams/sink.ts';
import type { SeenEvent } from './client.ts';

/** What a client does with what it gets. */
export interface Reader {
  connected(position: string | undefined): void;
  resync(notice: Resync): void;
  event(seen: SeenEvent): void;
  /** After some events: whether it takes more before `resume`. */
  goesOn(): boolean;
}

/** One of the gateways, as its users see it. */
export interface Replica {
  follow(wanted: Wanted, cursor: string | undefined, reader: Reader): { close(): void; resume(): void };
  publish(events: readonly NewEvent[], idempotencyKey: string | undefined): Promise<readonly Place[]>;
  /** Deliveries by where they came from, and gaps. */
  served(): Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

/** The bytes of a simulated dialect: what a client knows, it knows from them. */
const encoder: Encoder = {
  encode: ({ channel, data }, uuid, line) =>
    Buffer.from(`${JSON.stringify({ kind: 'event', line, uuid, channel, payload: data })}\n`),
};

/** A hub and its log, without a wire in between. */
export class DirectReplica implements Replica {
  private readonly hub: Hub;
  private readonly log: StreamLog;

  constructor(hub: Hub, log: StreamLog) {
    this.hub = hub;
    this.log = log;
  }

  follow(wanted: Wanted, cursor: string | undefined, reader: Reader): { close(): void; resume(): void } {
    return this.hub.follow({
      ...wanted,
      ...(cursor !== undefined && { cursor }),
      encoder,
      sink: {
        connected: (position) => reader.connected(position),
        resync: (notice) => reader.resync(notice),
        events: ({ bytes }) => {
          for (const line of bytes.toString().split('\n')) if (line !== '') reader.event(JSON.parse(line) as SeenEvent);
          return reader.goesOn();
        },
      },
    });
  }

  publish(events: readonly NewEvent[], key: string | undefined): Promise<readonly Place[]> {
    return this.log.append(events, key === undefined ? {} : { idempotency: { principal: 'publisher', key } });
  }

  served(): Readonly<Record<string, number>> {
    const { delivered, gaps } = this.hub.stats();
    return { ...delivered, gaps };
  }

  async stop(): Promise<void> {
    this.hub.close();
  }
}
