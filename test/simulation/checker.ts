import { matchesPattern } from '../../src/streams/channel-name.ts';
import { decodeCursor } from '../../src/streams/cursor.ts';
import { decodeUuid } from '../../src/streams/id.ts';
import type { LimitsOf } from '../../src/streams/log.ts';
import type { Place } from '../../src/streams/position.ts';
import type { Client, Frame } from './client.ts';
import type { Attempt, Record as PublishRecord } from './record.ts';

export const FAILURES = ['lost', 'doubled', 'reordered', 'untold', 'falseAlarm', 'unknown', 'stuck'] as const;
export type Failure = (typeof FAILURES)[number];

export interface Verdict {
  readonly delivered: number;
  readonly resyncs: Record<string, number>;
  /**
   * lost        an acknowledged event was passed over without a notice
   * doubled     an event came twice without a notice in between
   * reordered   numbers fell without a notice
   * untold      the epoch changed without a notice, or a cursor was not honoured without one
   * falseAlarm  `expired` although nothing had expired
   * unknown     something that nobody published
   * stuck       a follower that did not get to the end
   */
  readonly failures: Record<Failure, number>;
  readonly examples: string[];
}

interface Seen {
  readonly index: number;
  readonly seq: number;
}

/** What a client saw of one partition between two notices about all of it: within it order and completeness must hold. */
interface Stretch {
  readonly partition: number;
  epoch: number;
  /** Everything after this number must come. */
  start: number;
  readonly from: number;
  to: number;
  /** Everything up to here must have come. */
  reached: number;
  /** Begun by a notice: what is still kept of older epochs comes first. */
  readonly begunByNotice: boolean;
  readonly payloads: Set<string>;
  readonly seen: Map<string, Seen[]>;
}

const summary = (frame: Frame): string => {
  if (frame.kind === 'event') return `${frame.channel}@${decodeUuid(frame.uuid)?.seq}`;
  if (frame.kind === 'resync') return `!${frame.reason}(${frame.channels.join()})`;
  return `connected(${frame.cursor === undefined ? 'no id' : 'id'} -> ${frame.position === undefined ? 'no' : 'yes'})`;
};

export class Checker {
  private readonly failures = Object.fromEntries(FAILURES.map((name) => [name, 0])) as Record<Failure, number>;
  private readonly resyncs: Record<string, number> = {};
  private readonly examples: string[] = [];
  private readonly byChannel = new Map<string, Attempt[]>();
  private readonly unplaced = new Map<string, number>();
  private readonly record: PublishRecord;
  private readonly limitsOf: LimitsOf;
  private readonly partitions: number;
  private readonly partitionOf: (channel: string) => number;
  private delivered = 0;

  constructor(record: PublishRecord, limitsOf: LimitsOf, partitions: number, partitionOf: (channel: string) => number) {
    this.record = record;
    this.limitsOf = limitsOf;
    this.partitions = partitions;
    this.partitionOf = partitionOf;
    for (const attempt of record.attempts.values()) {
      if (!attempt.place) {
        this.unplaced.set(attempt.channel, (this.unplaced.get(attempt.channel) ?? 0) + 1);
        continue;
      }
      const list = this.byChannel.get(attempt.channel);
      if (list) list.push(attempt);
      else this.byChannel.set(attempt.channel, [attempt]);
    }
  }

  fail(failure: Failure, example: string): void {
    this.failures[failure]++;
    if (this.examples.length < 20) this.examples.push(`${failure}: ${example}`);
  }

  verdict(): Verdict {
    return { delivered: this.delivered, resyncs: this.resyncs, failures: this.failures, examples: this.examples };
  }

  check(client: Client, name: string): void {
    const current = new Map<number, Stretch>();
    const all: Stretch[] = [];
    const { frames } = client;
    const begin = (partition: number, epoch: number, start: number, from: number, begunByNotice: boolean): Stretch => {
      const stretch: Stretch = {
        partition,
        epoch,
        start,
        from,
        to: frames.length,
        reached: start,
        begunByNotice,
        payloads: new Set(),
        seen: new Map(),
      };
      const before = current.get(partition);
      if (before) before.to = from;
      current.set(partition, stretch);
      all.push(stretch);
      return stretch;
    };
    /** A notice about a pattern does not say which partition it is about: the next event there does. */
    const doubts = new Map<number, number>();
    for (const [i, frame] of frames.entries()) {
      if (frame.kind === 'connected') {
        this.checkConnected(frame, frames[i + 1], name);
        if (frame.cursor !== undefined || frame.position === undefined) continue;
        for (const place of this.places(frame.position)) begin(place.partition, place.epoch, place.seq, i, false);
      } else if (frame.kind === 'resync') {
        this.resyncs[frame.reason] = (this.resyncs[frame.reason] ?? 0) + 1;
        if (frame.reason === 'expired') this.checkExpired(client, i, current, doubts, name);
        if (frame.reason === 'expired' || frame.reason === 'gap') continue;
        const named = frame.channels.filter((channel) => !/[*#]/.test(channel)).map(this.partitionOf);
        if (named.length < frame.channels.length) {
          for (let partition = 0; partition < this.partitions; partition++) doubts.set(partition, i);
        }
        for (const partition of this.partitions === 1 ? [0] : new Set(named)) begin(partition, -1, 0, i, true);
      } else {
        this.delivered++;
        const place = decodeUuid(frame.uuid) as Place;
        const doubt = doubts.get(place.partition);
        const before = current.get(place.partition);
        doubts.delete(place.partition);
        const startedOver = before && (before.epoch !== place.epoch || place.seq <= before.reached);
        const stretch = doubt !== undefined && startedOver ? begin(place.partition, -1, 0, doubt, true) : before;
        if (!stretch) {
          this.fail('untold', `${name} got ${frame.payload} before anything else`);
          continue;
        }
        if (stretch.epoch === -1) stretch.epoch = place.epoch;
        if (stretch.epoch !== place.epoch) {
          this.fail('untold', `${name} epoch ${stretch.epoch} became ${place.epoch} at ${frame.payload}`);
          begin(place.partition, place.epoch, place.seq, i, true);
          continue;
        }
        this.takeEvent(stretch, frame, place, i, name);
        for (const other of this.places(frame.line)) {
          const lane = current.get(other.partition);
          if (lane && lane.epoch === other.epoch) lane.reached = Math.max(lane.reached, other.seq);
        }
      }
    }
    for (const stretch of all) this.checkComplete(client, stretch, name);
  }

  private takeEvent(stretch: Stretch, frame: Frame & { kind: 'event' }, place: Place, i: number, name: string): void {
    const { channel, payload } = frame;
    const attempt = this.record.attempts.get(payload);
    if (!attempt || attempt.channel !== channel) this.fail('unknown', `${name} got ${payload} on ${channel}`);
    if (stretch.payloads.has(payload)) this.fail('doubled', `${name} ${channel} ${payload} seq ${place.seq}`);
    stretch.payloads.add(payload);
    const line = decodeUuid(frame.line.slice(0, 36)) as Place;
    const late = line.seq !== place.seq; // the repair of a gap
    if (!late && place.seq <= stretch.reached) {
      this.fail('reordered', `${name} ${channel} ${payload} seq ${place.seq} after ${stretch.reached}`);
    }
    stretch.reached = Math.max(stretch.reached, place.seq);
    const list = stretch.seen.get(channel);
    if (list) list.push({ index: i, seq: place.seq });
    else stretch.seen.set(channel, [{ index: i, seq: place.seq }]);
  }

  private checkConnected(frame: Frame & { kind: 'connected' }, next: Frame | undefined, name: string): void {
    if (frame.cursor === undefined) return;
    if (frame.position === undefined) {
      if (next && next.kind !== 'resync' && next.kind !== 'connected') {
        this.fail('untold', `${name} resumed from ${frame.cursor} without success and without a notice`);
      }
    } else {
      const asked = frame.cursor.slice(frame.cursor.indexOf('-') + 1, frame.cursor.indexOf('-') + 37);
      if (!frame.position.startsWith(asked)) this.fail('untold', `${name} asked for ${asked}, got ${frame.position}`);
    }
  }

  /** The loss must be real: more events after the position than the channel keeps. */
  private checkExpired(
    client: Client,
    i: number,
    current: ReadonlyMap<number, Stretch>,
    doubts: ReadonlyMap<number, number>,
    name: string,
  ): void {
    const frame = client.frames[i] as Frame & { kind: 'resync' };
    for (const channel of frame.channels) {
      const stretch = current.get(this.partitionOf(channel));
      if (!stretch || doubts.has(stretch.partition)) continue;
      // An epoch that began by losing the index knows no names of before: while a client is still there it may be told
      // once too often.
      if (stretch.begunByNotice && stretch.reached <= this.base(stretch)) continue;
      const known = this.byChannel.get(channel) ?? [];
      const after = known.filter(({ place }) => place?.epoch === stretch.epoch && place.seq > stretch.reached).length;
      if (after + (this.unplaced.get(channel) ?? 0) <= this.limitsOf(channel).events) {
        const around = client.frames
          .slice(Math.max(0, i - 6), i + 4)
          .map(summary)
          .join(' ');
        this.fail('falseAlarm', `${name} ${channel} at ${stretch.reached}, only ${after} later: ${around}`);
      }
    }
  }

  /** Where the stretch's epoch began, as far as the publishers know. */
  private base({ partition, epoch }: Stretch): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (const { place } of this.record.attempts.values()) {
      if (place?.partition === partition && place.epoch === epoch) lowest = Math.min(lowest, place.seq);
    }
    return lowest - 1;
  }

  /** Every acknowledged event between start and end was seen, or a notice stands where it should have been. */
  private checkComplete(client: Client, stretch: Stretch, name: string): void {
    for (const [channel, attempts] of this.byChannel) {
      if (this.partitionOf(channel) !== stretch.partition || !this.wants(client, channel)) continue;
      const seen = stretch.seen.get(channel) ?? [];
      const notices = client.frames
        .slice(stretch.from, stretch.to)
        .flatMap((frame, i) =>
          frame.kind === 'resync' && this.names(frame.channels, channel) ? [stretch.from + i] : [],
        );
      for (const { place, payload } of attempts) {
        if (!place || place.epoch !== stretch.epoch || place.seq <= stretch.start || place.seq > stretch.reached)
          continue;
        if (stretch.payloads.has(payload)) continue;
        const before = seen.findLast(({ seq }) => seq < place.seq)?.index ?? stretch.from - 1;
        const after = seen.find(({ seq }) => seq > place.seq)?.index ?? stretch.to;
        if (notices.some((index) => index > before && index < after)) continue;
        const around = client.frames
          .slice(Math.max(0, before - 4), before + 6)
          .map(summary)
          .join(' ');
        const range = `${stretch.start}..${stretch.reached}`;
        this.fail('lost', `${name} ${channel} ${payload} seq ${place.seq} (${range}), around: ${around}`);
      }
    }
  }

  private wants({ wanted }: Client, channel: string): boolean {
    return wanted.names.includes(channel) || this.names(wanted.patterns ?? [], channel);
  }

  private names(channels: readonly string[], channel: string): boolean {
    return channels.some((pattern) => matchesPattern(pattern, channel));
  }

  private places(line: string): readonly Place[] {
    return decodeCursor(`pos-${line}`, this.partitions)?.places ?? [];
  }
}
