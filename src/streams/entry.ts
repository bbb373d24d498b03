import { encodeUuid } from './id.ts';
import type { StoredEvent } from './log.ts';

/** Writes an event as some dialect's bytes. One object per dialect and framing: connections share what it has written. */
export interface Encoder {
  /**
   * `uuid` is the event's own id without its prefix. `line` is what the `id:` line carries: the same, with the other
   * partitions behind it where there are several, or another position altogether when an event is delivered late.
   */
  encode(event: StoredEvent, uuid: string, line: string): Buffer;
}

/** An event in memory, encoded at most once per encoder. */
export class Entry {
  readonly event: StoredEvent;
  readonly seq: number;
  readonly ms: number;
  readonly uuid: string;
  /** The true predecessor, where the mirror knows it better than the store, which may have forgotten the name. */
  readonly prev: number;
  private encoder: Encoder | undefined;
  private encoded: Buffer | undefined;
  private others: Map<Encoder, Buffer> | undefined;

  constructor(event: StoredEvent, partition: number, epoch: number, prev = event.prev) {
    this.event = event;
    this.seq = event.seq;
    this.ms = event.ms;
    this.prev = prev;
    this.uuid = encodeUuid({ ms: event.ms, seq: event.seq, partition, epoch });
  }

  encode(encoder: Encoder): Buffer {
    if (this.encoder === encoder) return this.encoded as Buffer;
    const other = this.others?.get(encoder);
    if (other) return other;
    const encoded = encoder.encode(this.event, this.uuid, this.uuid);
    if (this.encoder) {
      this.others ??= new Map();
      this.others.set(encoder, encoded);
    } else {
      this.encoder = encoder;
      this.encoded = encoded;
    }
    return encoded;
  }

  encodeAt(encoder: Encoder, line: string): Buffer {
    return line === this.uuid ? this.encode(encoder) : encoder.encode(this.event, this.uuid, line);
  }
}
