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
  private encoded: Map<JobEncoder, Buffer> | undefined;

  constructor({ seq, data, end }: JobEvent) {
    this.seq = seq;
    this.data = data;
    this.size = Buffer.byteLength(data);
    if (end) this.end = end;
  }

  encode(encoder: JobEncoder): Buffer {
    let bytes = this.encoded?.get(encoder);
    if (!bytes) {
      bytes = encoder.encode(this);
      this.encoded ??= new Map();
      this.encoded.set(encoder, bytes);
    }
    return bytes;
  }
}
