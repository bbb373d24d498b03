import type { Attachment, Source } from './attachment.ts';
import { type Cursor, decodeCursor, encodePlaces } from './cursor.ts';
import type { Encoder, Entry } from './entry.ts';
import { type Arrival, type Batch, type Member, makeBatch } from './group.ts';
import type { Interest } from './interest.ts';
import { Losses } from './losses.ts';
import { ORIGIN, type Place, type Position } from './position.ts';
import type { PageReader, SharedPage } from './reader.ts';
import type { ResyncReason, Sink } from './sink.ts';

/** The rest of the house, as a follower needs it. */
export interface Surroundings {
  readonly attachments: readonly Attachment[];
  readonly reader: PageReader;
  /** Store time of a partition. */
  now(partition: number): number;
  /** Where everything received stands, in all partitions. */
  heads(): Place[];
  /** Look at this follower again at the end of this turn, or after a while. */
  again(follower: Follower, afterMs?: number): void;
  /** It is level with everything: from now on its group serves it. */
  join(follower: Follower): void;
  resynced(reason: ResyncReason): void;
  delivered(events: number, from: 'mirror' | 'log'): void;
}

interface Gap {
  readonly partition: number;
  readonly channel: string;
  readonly after: number;
}

/** Of one write while catching up: enough to be fast, little enough to notice soon that the reader is not. */
const EVENTS_AT_ONCE = 512;
const RETRY_MS = 100;

/**
 * A position that catches up. Behind, for whatever reason (an old cursor, a slow reader, a lost connection to the store),
 * is one state: there is no queue per follower, only a place from which it reads on, from the mirrors if they reach back
 * that far and from the log if not.
 */
export class Follower implements Member {
  readonly interest: Interest;
  readonly encoder: Encoder;
  live = false;
  private readonly around: Surroundings;
  private readonly sink: Sink;
  private readonly cursorText: string | undefined;
  private places: Place[] = [];
  private readonly losses = new Losses();
  private gaps: Gap[] = [];
  private started = false;
  private markAsked = false;
  private busy = false;
  private blocked = false;
  private closed = false;

  constructor(interest: Interest, encoder: Encoder, sink: Sink, cursor: string | undefined, around: Surroundings) {
    this.interest = interest;
    this.encoder = encoder;
    this.sink = sink;
    this.cursorText = cursor;
    this.around = around;
  }

  /** Where it stands, if that is where everything received stands. */
  get position(): string | undefined {
    return this.live ? encodePlaces(this.interest.lanes[0] ?? 0, this.around.heads()) : undefined;
  }

  close(): void {
    this.closed = true;
  }

  resume(): void {
    if (!this.blocked) return;
    this.blocked = false;
    this.around.again(this);
  }

  /** A batch of the group. */
  take(batch: Batch): boolean {
    if (this.sink.events(batch)) return true;
    this.blocked = true;
    this.leave();
    return false;
  }

  /** No longer live; it stands where everything received stands. */
  leave(): void {
    this.live = false;
    this.places = this.around.heads();
    if (!this.closed) this.around.again(this);
  }

  /** Events after a number may be missing although this follower's position has passed them. */
  missGap(partition: number, channel: string, after: number): void {
    if (this.started && (this.places[partition] as Place).seq > after) this.gaps.push({ partition, channel, after });
  }

  /** Takes whatever can be taken now. */
  pump(): void {
    if (this.closed || this.live || this.busy || this.blocked) return;
    if (!this.started && !this.start()) return;
    let level = true;
    for (const partition of this.interest.lanes) {
      const attachment = this.attachment(partition);
      if (!attachment.serves(this.interest)) {
        level = false;
        continue;
      }
      if (this.place(partition).epoch !== attachment.epoch) this.startOver('epoch_changed', [partition]);
      if (!this.repair(attachment) || !this.advance(attachment)) level = false;
      if (this.busy || this.blocked || this.closed) return;
    }
    if (level) {
      this.losses.clear();
      this.live = true;
      this.around.join(this);
      this.sink.level?.();
    }
  }

  private attachment(partition: number): Attachment {
    return this.around.attachments[partition] as Attachment;
  }

  private place(partition: number): Place {
    return this.places[partition] as Place;
  }

  private moveTo(partition: number, { ms, seq }: Position): void {
    this.places[partition] = { ms, seq, partition, epoch: this.place(partition).epoch };
  }

  // Where it begins

  private start(): boolean {
    const { lanes } = this.interest;
    if (!lanes.every((lane) => this.attachment(lane).serves(this.interest))) return false;
    const cursor = this.cursorText === undefined ? undefined : this.decode(this.cursorText);
    if (cursor && !this.markAsked && lanes.some((lane) => this.isAhead(lane, cursor))) {
      this.askForMarks(lanes);
      return false;
    }
    this.started = true;
    this.places = this.around.heads();
    if (this.cursorText === undefined) {
      this.sink.connected(encodePlaces(lanes[0] ?? 0, this.places), false);
      return true;
    }
    const troubles = new Map<ResyncReason, number[]>();
    for (const lane of lanes) {
      const given = cursor?.places[lane];
      const reason = !cursor
        ? 'unknown_id'
        : given?.epoch !== this.place(lane).epoch
          ? 'epoch_changed'
          : this.isAhead(lane, cursor)
            ? 'ahead_of_head'
            : undefined;
      if (reason) troubles.set(reason, [...(troubles.get(reason) ?? []), lane]);
      else this.moveTo(lane, given as Place);
    }
    const honoured = cursor && troubles.size === 0;
    this.sink.connected(honoured ? encodePlaces(cursor.leading, this.places) : undefined, honoured === true);
    for (const [reason, partitions] of troubles) this.startOver(reason, partitions);
    return true;
  }

  private decode(text: string): Cursor | undefined {
    return decodeCursor(text, this.around.attachments.length);
  }

  private isAhead(lane: number, cursor: Cursor): boolean {
    const { epoch, head } = this.attachment(lane);
    const given = cursor.places[lane] as Place;
    return given.epoch === epoch && given.seq > head.seq;
  }

  /** A cursor from another replica may be ahead of what has been received here; only a mark tells it from an impossible one. */
  private askForMarks(lanes: readonly number[]): void {
    this.busy = true;
    Promise.all(lanes.map((lane) => this.attachment(lane).feed.mark())).then(
      () => {
        this.busy = false;
        this.markAsked = true;
        this.around.again(this);
      },
      () => this.retry(),
    );
  }

  private retry(): void {
    this.busy = false;
    this.around.again(this, RETRY_MS);
  }

  private startOver(reason: ResyncReason, partitions: readonly number[]): void {
    for (const partition of partitions) {
      const { epoch } = this.attachment(partition);
      this.places[partition] = { ...ORIGIN, partition, epoch: epoch ?? 0 };
      this.losses.startOver(partition);
      this.gaps = this.gaps.filter((gap) => gap.partition !== partition);
    }
    this.tell(reason, [...new Set(partitions.flatMap((partition) => this.interest.channelsIn(partition)))]);
  }

  private tell(reason: ResyncReason, channels: readonly string[]): void {
    if (channels.length === 0) return;
    this.around.resynced(reason);
    this.sink.resync({ reason, channels });
  }

  // Catching up

  /** True when it stands where the partition does. */
  private advance(attachment: Attachment): boolean {
    const { partition, head } = attachment;
    const from = this.place(partition);
    if (from.seq >= head.seq) {
      this.losses.takeCover(partition); // there was nothing that the notice could cover
      return true;
    }
    const sources = attachment.sources(this.interest, from.seq);
    if (sources.every(({ mirror }) => mirror && mirror.floor <= from.seq)) {
      return this.advanceFromMirrors(attachment, sources, from);
    }
    this.readOn(attachment, sources, from);
    return false;
  }

  private advanceFromMirrors(attachment: Attachment, sources: readonly Source[], from: Place): boolean {
    const { partition, head } = attachment;
    const now = this.around.now(partition);
    const kept: Entry[] = [];
    const lost: string[] = [];
    for (const { channel, last, mirror } of sources) {
      const entries = mirror?.after(from.seq, now) ?? [];
      if (this.losses.find(channel, from.seq, entries[0], last)) lost.push(channel);
      kept.push(...entries);
    }
    this.tellLost(partition, lost);
    if (sources.length > 1) kept.sort((a, b) => a.seq - b.seq);
    if (this.deliverSome(partition, kept, 'mirror')) {
      this.moveTo(partition, head);
      return !this.blocked;
    }
    this.around.again(this);
    return false;
  }

  private readOn(attachment: Attachment, sources: readonly Source[], from: Place): void {
    const { partition, head, generation } = attachment;
    this.busy = true;
    const channels = sources.map(({ channel }) => channel);
    this.around.reader.read(partition, channels, from).then(
      (page) => {
        this.busy = false;
        if (this.closed) return;
        // What was known when the page was asked for must still hold; channels not asked for had nothing up to `head`.
        if (attachment.generation === generation && page.epoch === attachment.epoch) {
          this.takePage(partition, page, from, head);
        }
        this.around.again(this);
      },
      () => this.retry(),
    );
  }

  private takePage(partition: number, page: SharedPage, from: Place, received: Position): void {
    const horizon = page.horizon.seq < received.seq ? page.horizon : received;
    const lost: string[] = [];
    const kept: Entry[] = [];
    for (const [channel, { entries, last }] of page.channels) {
      if (this.losses.find(channel, from.seq, entries[0], last)) lost.push(channel);
      for (const entry of entries) if (entry.seq <= horizon.seq) kept.push(entry);
    }
    this.tellLost(partition, lost);
    kept.sort((a, b) => a.seq - b.seq);
    const all = this.deliverSome(partition, kept, 'log');
    if (all && horizon.seq > this.place(partition).seq) this.moveTo(partition, horizon);
  }

  private tellLost(partition: number, channels: readonly string[]): void {
    if (!this.losses.takeCover(partition)) this.tell('expired', channels);
  }

  /** As many as are taken at once, and the position with them; true if these were all. */
  private deliverSome(partition: number, entries: readonly Entry[], from: 'mirror' | 'log'): boolean {
    const most = Math.min(EVENTS_AT_ONCE, Math.max(1, this.sink.room?.() ?? EVENTS_AT_ONCE));
    const some = entries.length > most ? entries.slice(0, most) : entries;
    if (some.length > 0) {
      const arrivals: Arrival[] = some.map((entry) => ({ partition, entry }));
      this.send(makeBatch(arrivals, this.encoder, this.places), from);
    }
    return some.length === entries.length;
  }

  private send(batch: Batch, from: 'mirror' | 'log'): void {
    this.around.delivered(batch.events.length, from);
    if (!this.sink.events(batch)) this.blocked = true;
  }

  // Gaps

  /** Delivers what a gap left out, late: with the follower's position in the `id:` line. True when there is none. */
  private repair(attachment: Attachment): boolean {
    const { partition } = attachment;
    const mine = this.gaps.filter((gap) => gap.partition === partition);
    if (mine.length === 0) return true;
    this.gaps = this.gaps.filter((gap) => gap.partition !== partition);
    this.busy = true;
    const { generation } = attachment;
    const reads = mine.map(({ channel, after }) => this.around.reader.readAll(partition, channel, after));
    Promise.all(reads).then(
      (pages) => {
        this.busy = false;
        if (this.closed) return;
        if (attachment.generation === generation) {
          this.tell('gap', [...new Set(mine.map(({ channel }) => channel))]);
          const place = this.place(partition);
          const late = pages.flat().filter(({ seq }) => seq <= place.seq);
          late.sort((a, b) => a.seq - b.seq);
          const line = encodePlaces(partition, this.places);
          const bytes = Buffer.concat(late.map((entry) => entry.encodeAt(this.encoder, line)));
          if (late.length > 0) this.send({ events: late.map(({ event }) => event), bytes }, 'log');
        }
        this.around.again(this);
      },
      () => {
        this.gaps.push(...mine);
        this.retry();
      },
    );
    return false;
  }
}
