import type { Encoder } from '../../src/streams/entry.ts';
import type { Resync, Sink } from '../../src/streams/follower.ts';
import type { Following, Hub } from '../../src/streams/hub.ts';
import type { Wanted } from '../../src/streams/interest.ts';
import type { StoredEvent } from '../../src/streams/log.ts';
import type { Random } from '../support/random.ts';

export interface SeenEvent {
  readonly kind: 'event';
  /** What the `id:` line carries. */
  readonly line: string;
  readonly uuid: string;
  readonly channel: string;
  readonly prev: number;
  readonly prevForgotten: boolean;
  readonly payload: string;
}

export type Frame =
  | SeenEvent
  | { readonly kind: 'connected'; readonly cursor: string | undefined; readonly position: string | undefined }
  | ({ readonly kind: 'resync' } & Resync);

/** The bytes of a simulated dialect: what a client knows, it knows from them. */
export const simulationEncoder: Encoder = {
  encode: ({ channel, prev, prevForgotten, data }: StoredEvent, uuid, line) =>
    Buffer.from(`${JSON.stringify({ kind: 'event', line, uuid, channel, prev, prevForgotten, payload: data })}\n`),
};

/** A reader that drops and comes back, on any hub, with the last id it has seen; sometimes it reads slowly. */
export class Client {
  readonly wanted: Wanted;
  readonly frames: Frame[] = [];
  sessions = 0;
  private readonly random: Random;
  private readonly hubs: readonly Hub[];
  private lastId: string | undefined;
  private readonly payloads = new Set<string>();

  constructor(wanted: Wanted, hubs: readonly Hub[], random: Random) {
    this.wanted = wanted;
    this.hubs = hubs;
    this.random = random;
  }

  has(payload: string): boolean {
    return this.payloads.has(payload);
  }

  /** One connection, until it has seen some events, some time has passed, or it is told to stop. */
  session(patient: boolean, signal: AbortSignal): Promise<void> {
    this.sessions++;
    const { random } = this;
    let left = patient ? Number.POSITIVE_INFINITY : 1 + random.below(80);
    const slow = !patient && random.chance(0.1);
    return new Promise((resolve) => {
      let following: Following | undefined;
      let over = false;
      const end = (): void => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        following?.close();
        resolve();
      };
      const timer = setTimeout(end, patient ? 2 ** 30 : 200 + random.below(1_200));
      signal.addEventListener('abort', end, { once: true });
      const cursor = this.lastId;
      const sink: Sink = {
        connected: (position) => {
          if (over) return;
          this.frames.push({ kind: 'connected', cursor, position });
          if (position !== undefined) this.lastId = `pos-${position}`;
        },
        resync: (notice) => {
          if (!over) this.frames.push({ kind: 'resync', ...notice });
        },
        events: (batch) => {
          for (const line of batch.bytes.toString().split('\n')) {
            if (over || line === '') continue; // a connection may be cut at any event of a batch
            const seen = JSON.parse(line) as SeenEvent;
            this.frames.push(seen);
            this.payloads.add(seen.payload);
            this.lastId = `msg-${seen.line}`;
            if (--left <= 0) end();
          }
          if (!slow || !random.chance(0.2)) return true;
          setTimeout(() => following?.resume(), random.below(300));
          return false;
        },
      };
      const hub = random.pick(this.hubs);
      following = hub.follow({
        ...this.wanted,
        encoder: simulationEncoder,
        sink,
        ...(cursor !== undefined && { cursor }),
      });
      if (over || signal.aborted) end();
    });
  }
}
