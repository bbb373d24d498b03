import type { LimitsOf, NewEvent, StreamLog } from '../../src/streams/log.ts';
import { Random } from '../support/random.ts';
import { logMakers } from './logs.ts';

const OPERATIONS = 10_000;
const NAMES = Array.from({ length: 24 }, (_, i) => `${i % 3 ? 'a' : 'b'}.${i}`);
const MAX_NAMES = 18;
const limitsOf: LimitsOf = (channel) => ({ events: (NAMES.indexOf(channel) % 5) * 3, ageMs: 3_600_000 });

interface ModelEvent {
  seq: number;
  channel: string;
  data: string;
  prev: number;
  prevForgotten: boolean;
}

/** The log as one would explain it: a list of everything that ever happened. */
class Model {
  private readonly events: ModelEvent[] = [];
  private readonly last = new Map<string, number>();
  private readonly keys = new Map<string, { body: string; seqs: number[] }>();
  private forgot = 0;

  append(events: NewEvent[], key?: string): number[] | 'conflict' {
    const body = JSON.stringify(events);
    const seen = key === undefined ? undefined : this.keys.get(key);
    if (seen) return seen.body === body ? seen.seqs : 'conflict';
    const seqs = events.map(({ channel, data }) => {
      const known = this.last.get(channel);
      const seq = this.events.length + 1;
      this.events.push({ seq, channel, data, prev: known ?? this.forgot, prevForgotten: known === undefined });
      this.last.set(channel, seq);
      return seq;
    });
    const byAge = [...this.last].sort(([, a], [, b]) => a - b);
    for (const [name, seq] of byAge.slice(0, Math.max(0, byAge.length - MAX_NAMES))) {
      this.last.delete(name);
      this.forgot = seq;
      for (const event of this.events) if (event.channel === name) event.channel = ''; // its events go with it
    }
    if (key !== undefined) this.keys.set(key, { body, seqs });
    return seqs;
  }

  kept(channel: string, after: number) {
    const { events: most } = limitsOf(channel);
    const mine = this.events.filter((event) => event.channel === channel);
    return mine.slice(Math.max(0, mine.length - most)).filter(({ seq }) => seq > after);
  }

  read(channels: string[], after: number, page: number) {
    let horizon = this.events.length;
    const out = channels.map((channel) => {
      const events = this.kept(channel, after).slice(0, page);
      if (events.length === page) horizon = Math.min(horizon, events.at(-1)?.seq ?? horizon);
      return { channel, events, last: this.last.get(channel) ?? this.forgot };
    });
    return { horizon, channels: out };
  }

  index() {
    return { forgot: this.forgot, last: [...this.last].sort() };
  }
}

const plain = ({ seq, channel, data, prev, prevForgotten }: ModelEvent): ModelEvent => ({
  seq,
  channel,
  data,
  prev,
  prevForgotten,
});

describe.each(logMakers())('the $name log', (maker) => {
  beforeAll(() => maker.start());
  afterAll(() => maker.stop());

  it(`does what the model does in ${OPERATIONS} random operations`, async () => {
    const log: StreamLog = await maker.make({ limitsOf, maxNames: MAX_NAMES });
    const model = new Model();
    const random = new Random(4711);
    let head = 0;
    for (let i = 0; i < OPERATIONS; i++) {
      const dice = random.next();
      const channels = [...new Set(Array.from({ length: 1 + random.below(5) }, () => random.pick(NAMES)))];
      if (dice < 0.6) {
        const events = Array.from({ length: random.below(4) }, () => ({
          channel: random.pick(channels),
          data: `d${random.below(3)}`,
        }));
        const key = random.chance(0.3) ? `k${random.below(300)}` : undefined;
        const options = key === undefined ? {} : { idempotency: { principal: 'p', key } };
        const got = await log.append(events, options).then(
          (places) => places.map(({ seq }) => seq),
          (error: { code: string }) => error.code,
        );
        expect(got).toEqual(model.append(events, key));
        if (Array.isArray(got)) head = Math.max(head, ...got);
      } else if (dice < 0.85) {
        const after = { ms: 0, seq: random.below(head + 2) };
        const page = random.chance(0.5) ? 100 : 1 + random.below(4);
        if (page < 100) after.seq = 0; // paging goes by stream ids, and only a real position has a true time
        const got = await log.read(0, channels, after, page);
        const want = model.read(channels, after.seq, page);
        expect(got.horizon.seq).toBe(want.horizon);
        for (const { channel, events, last } of want.channels) {
          expect(got.channels.get(channel)?.last).toBe(last);
          expect(got.channels.get(channel)?.events.map((event) => plain(event))).toEqual(events);
        }
      } else if (dice < 0.95) {
        const count = 1 + random.below(6);
        const got = await log.tails(0, channels, () => count);
        for (const channel of channels) {
          expect(got.channels.get(channel)?.events.map((event) => plain(event))).toEqual(
            model.kept(channel, 0).slice(-count),
          );
        }
      } else {
        const { forgot, last } = await log.index(0);
        expect({ forgot, last: [...last].sort() }).toEqual(model.index());
      }
    }
  }, 60_000);
});
