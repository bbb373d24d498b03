import type { Wanted } from '../../src/streams/interest.ts';
import type { Resync } from '../../src/streams/sink.ts';
import type { Random } from '../support/random.ts';
import type { Reader, Replica } from './replica.ts';

export interface SeenEvent {
  readonly kind: 'event';
  /** What the `id:` line carries. */
  readonly line: string;
  readonly uuid: string;
  readonly channel: string;
  readonly payload: string;
}

export type Frame =
  | SeenEvent
  | { readonly kind: 'connected'; readonly cursor: string | undefined; readonly position: string | undefined }
  | ({ readonly kind: 'resync' } & Resync);

/** A reader that drops and comes back, on any replica, with the last id it has seen; sometimes it reads slowly. */
export class Client {
  readonly wanted: Wanted;
  readonly frames: Frame[] = [];
  sessions = 0;
  private readonly random: Random;
  private readonly replicas: readonly Replica[];
  private lastId: string | undefined;
  private readonly payloads = new Set<string>();

  constructor(wanted: Wanted, replicas: readonly Replica[], random: Random) {
    this.wanted = wanted;
    this.replicas = replicas;
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
      let connection: { close(): void; resume(): void } | undefined;
      let over = false;
      const end = (): void => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        connection?.close();
        resolve();
      };
      const timer = setTimeout(end, patient ? 2 ** 30 : 200 + random.below(1_200));
      signal.addEventListener('abort', end, { once: true });
      const reader: Reader = {
        connected: (position) => {
          if (over) return;
          this.frames.push({ kind: 'connected', cursor: this.lastId, position });
          if (position !== undefined) this.lastId = `pos-${position}`;
        },
        resync: (notice) => {
          if (!over) this.frames.push({ kind: 'resync', ...notice });
        },
        event: (seen) => {
          if (over) return; // a connection may be cut at any event of a batch
          this.frames.push(seen);
          this.payloads.add(seen.payload);
          this.lastId = `msg-${seen.line}`;
          if (--left <= 0) end();
        },
        goesOn: () => {
          if (!slow || !random.chance(0.2)) return true;
          setTimeout(() => connection?.resume(), random.below(300));
          return false;
        },
      };
      connection = random.pick(this.replicas).follow(this.wanted, this.lastId, reader);
      if (over || signal.aborted) {
        connection.close();
        end();
      }
    });
  }
}
