import type { EndState, JobEvent } from '../../../src/jobs/job.ts';
import type { JobReader, Reset } from '../../../src/jobs/reader.ts';
import type { Replica } from '../replicas.ts';

export type Heard = { readonly reset: Reset } | { readonly event: JobEvent } | { readonly end: EndState };

/** Somebody who follows a job over any number of connections and keeps everything that was said. */
export class Client {
  readonly name: string;
  readonly id: string;
  /** Where it began. */
  readonly after: number;
  readonly heard: Heard[] = [];
  /** The last number that it has. */
  position: number;
  ended: EndState | undefined;
  /** It was told that there is no such job. */
  gone: 'at all' | 'for a newcomer' | undefined;
  replica: Replica | undefined;
  private reader: JobReader | undefined;
  private connection = 0;

  constructor(name: string, id: string, after: number) {
    this.name = name;
    this.id = id;
    this.after = after;
    this.position = after;
  }

  get over(): boolean {
    return this.ended !== undefined || this.gone !== undefined;
  }

  /** `lives` says, when the answer comes, whether the replica was there to give it. */
  async connect(replica: Replica, lives: () => boolean): Promise<void> {
    this.drop();
    if (this.gone) return;
    const connection = ++this.connection;
    this.replica = replica;
    const reader = await replica.jobs.attach(this.id, { after: this.position });
    if (connection !== this.connection) {
      reader?.close();
    } else if (!lives()) {
      this.drop();
    } else if (reader) {
      this.reader = reader;
      reader.onWake(() => this.take(reader));
      this.take(reader);
    } else {
      this.gone = 'at all';
      this.drop();
    }
  }

  drop(): void {
    this.connection++;
    this.replica = undefined;
    const { reader } = this;
    this.reader = undefined;
    reader?.close();
  }

  private take(reader: JobReader): void {
    for (let taken = reader.take(); taken && this.reader === reader; taken = reader.take()) {
      if (taken.what === 'reset') {
        this.heard.push({ reset: taken.reset });
        this.position = taken.reset.from - 1;
      } else if (taken.what === 'events') {
        for (const { seq, data, end } of taken.events) this.heard.push({ event: { seq, data, ...(end && { end }) } });
        this.position = taken.events.at(-1)?.seq ?? this.position;
      } else {
        if (this.ended === undefined) this.heard.push({ end: taken.state });
        this.ended = taken.state;
        return;
      }
    }
  }
}
