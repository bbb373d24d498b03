import { setImmediate as turn } from 'node:timers/promises';
import type { Encoder } from '../../src/streams/entry.ts';
import type { Batch } from '../../src/streams/group.ts';
import type { Following, Hub } from '../../src/streams/hub.ts';
import type { Wanted } from '../../src/streams/interest.ts';
import type { Resync, Sink } from '../../src/streams/sink.ts';

/** `seq:data@line;` for each event. */
export class PlainEncoder implements Encoder {
  calls = 0;

  encode({ seq, data }: { seq: number; data: string }, _uuid: string, line: string): Buffer {
    this.calls++;
    return Buffer.from(`${seq}:${data}@${line};`);
  }
}

/** A follower that writes everything down. */
export class Recorder implements Sink {
  readonly batches: Batch[] = [];
  readonly resyncs: Resync[] = [];
  /** Everything in order: data of events, `!reason channels` of notices. */
  readonly story: string[] = [];
  readonly following: Following;
  position: string | undefined;
  isConnected = false;
  resumed: boolean | undefined;
  /** What `events` answers. */
  takes = true;
  lastId: string | undefined;

  constructor(hub: Hub, wanted: Partial<Wanted> & { cursor?: string | undefined; encoder?: Encoder }) {
    this.lastId = wanted.cursor;
    this.following = hub.follow({
      names: wanted.names ?? [],
      ...(wanted.patterns && { patterns: wanted.patterns }),
      ...(wanted.granted && { granted: wanted.granted }),
      ...(wanted.cursor !== undefined && { cursor: wanted.cursor }),
      encoder: wanted.encoder ?? new PlainEncoder(),
      sink: this,
    });
  }

  connected(position: string | undefined, resumed: boolean): void {
    this.isConnected = true;
    this.position = position;
    this.resumed = resumed;
    if (position !== undefined) this.lastId = `pos-${position}`;
  }

  resync(notice: Resync): void {
    this.resyncs.push(notice);
    this.story.push(`!${notice.reason} ${notice.channels.join()}`);
  }

  events(batch: Batch): boolean {
    this.batches.push(batch);
    for (const text of batch.bytes.toString().split(';').slice(0, -1)) {
      const [event = '', line = ''] = text.split('@');
      this.story.push(event.slice(event.indexOf(':') + 1));
      this.lastId = `msg-${line}`;
    }
    return this.takes;
  }
}

/** Long enough for everything that does not wait for a timer or a socket. */
export const settled = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await turn();
};
