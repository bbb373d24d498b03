import type { EndState, JobEvent } from './job.ts';

/** Writes an event of a job as some dialect's bytes. One object per dialect and framing: streams share what it has written. */
export interface JobEncoder {
  encode(event: JobEvent): Buffer;
}

/** A stored event in memory, encoded at most once per encoder. */
export class JobEntry implements JobEvent {
  readonly seq: number;
  readonly data: string;
  readonly end?: EndState;
  /** Bytes of the data. */
  readonly size: number;
  private encoder: JobEncoder | undefined;
  private encoded: Buffer | undefined;
  private others: Map<JobEncoder, Buffer> | undefined;

  constructor({ seq, data, end }: JobEvent) {
    this.seq = seq;
    this.data = data;
    this.size = Buffer.byteLength(data);
    if (end) this.end = end;
  }

  encode(encoder: JobEncoder): Buffer {
    if (this.encoder === encoder) return this.encoded as Buffer;
    const other = this.others?.get(encoder);
    if (other) return other;
    const encoded = encoder.encode(this);
    if (this.encoder) {
      this.others ??= new Map();
      this.others.set(encoder, encoded);
    } else {
      this.encoder = encoder;
      this.encoded = encoded;
    }
    return encoded;
  }
}
