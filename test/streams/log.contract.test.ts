import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ChannelEvents,
  FeedListener,
  LogError,
  Mark,
  NewEvent,
  StoredEvent,
  StreamLog,
} from '../../src/streams/log.ts';
import { ORIGIN, type Position } from '../../src/streams/position.ts';
import { eventually, logMakers } from './logs.ts';

const event = (channel: string, data = 'x'): NewEvent => ({ channel, data });

const readAll = async (log: StreamLog, channel: string, after = 0, page = 100): Promise<ChannelEvents> => {
  const got = await log.read(0, [channel], { ms: 0, seq: after }, page);
  return got.channels.get(channel) as ChannelEvents;
};

const data = ({ events }: ChannelEvents): string[] => events.map((e) => e.data);

const listen = (log: StreamLog) => {
  const events: StoredEvent[] = [];
  const marks: Mark[] = [];
  let open = false;
  const listener: FeedListener = {
    opened: () => {
      open = true;
    },
    closed: () => {
      open = false;
    },
    event: (_, e) => events.push(e),
    marked: (mark) => marks.push(mark),
  };
  const feed = log.subscribe(0, listener);
  return { feed, events, marks, opened: () => eventually(() => open) };
};

describe.each(logMakers())('the $name log', (maker) => {
  beforeAll(() => maker.start());
  afterAll(() => maker.stop());

  it('numbers events from 1, without holes over all channels, and links each to its predecessor in its channel', async () => {
    const log = await maker.make();
    const places = await log.append([event('a'), event('b'), event('a')]);
    const [more] = await log.append([event('a')]);
    expect([...places, more].map((place) => place?.seq)).toEqual([1, 2, 3, 4]);
    expect(new Set([...places, more].map((place) => place?.epoch)).size).toBe(1);
    expect((await readAll(log, 'a')).events.map(({ seq, prev }) => [seq, prev])).toEqual([
      [1, 0],
      [3, 1],
      [4, 3],
    ]);
  });

  it('keeps data as it is, whatever it holds', async () => {
    const log = await maker.make();
    const odd = ['', ' ', '\r\n\0', 'ünï 🌊', '~1 2 3', '{"a": [1, 2]}', 'x'.repeat(100_000)];
    await log.append(odd.map((text) => event('odd', text)));
    expect(data(await readAll(log, 'odd'))).toEqual(odd);
  });

  it('reads what comes after a position, page by page, and says how far the page is complete', async () => {
    const log = await maker.make();
    const places = await log.append(Array.from({ length: 10 }, (_, i) => event(i % 2 ? 'b' : 'a', String(i + 1))));
    const after = places[1] as Position;
    const page = await log.read(0, ['a', 'b'], after, 2);
    expect(data(page.channels.get('a') as ChannelEvents)).toEqual(['3', '5']);
    expect(data(page.channels.get('b') as ChannelEvents)).toEqual(['4', '6']);
    expect(page.horizon.seq).toBe(5);
    expect((await log.read(0, ['a', 'b'], after, 100)).horizon.seq).toBe(10);
  });

  it('reads on from a position whose time was made up', async () => {
    const log = await maker.make();
    const places = await log.append(Array.from({ length: 50 }, (_, i) => event('a', String(i + 1))));
    const early = await log.read(0, ['a'], { ms: 0, seq: 40 }, 4);
    expect(data(early.channels.get('a') as ChannelEvents).slice(0, 2)).toEqual(['41', '42']);
    expect(early.horizon.seq).toBeGreaterThan(40);
    const late = await log.read(0, ['a'], { ms: (places[0] as Position).ms + 1e6, seq: 40 }, 4);
    expect(late.channels.get('a')?.last).toBe(50);
    expect(late.horizon.seq).toBeGreaterThan(40);
  });

  it('keeps exactly as many events as the channel allows', async () => {
    const log = await maker.make({ limitsOf: (c) => ({ events: c === 'none' ? 0 : 3, ageMs: 60_000 }) });
    await log.append(Array.from({ length: 5 }, (_, i) => event('few', String(i))));
    await log.append([event('few', '5'), event('none')]);
    expect(data(await readAll(log, 'few'))).toEqual(['3', '4', '5']);
    expect(await readAll(log, 'none')).toEqual({ events: [], last: 7 });
    const tails = await log.tails(0, ['few', 'none'], () => 2);
    expect(data(tails.channels.get('few') as ChannelEvents)).toEqual(['4', '5']);
    expect(data(tails.channels.get('none') as ChannelEvents)).toEqual([]);
  });

  it('keeps nothing longer than the channel allows, and still knows that it was there', async () => {
    const log = await maker.make({ limitsOf: (c) => ({ events: 10, ageMs: c === 'short' ? 40 : 60_000 }) });
    await log.append([event('short', 'old'), event('long', 'old')]);
    await sleep(60);
    expect(await readAll(log, 'short')).toEqual({ events: [], last: 1 });
    await log.append([event('short', 'new')]);
    expect(data(await readAll(log, 'short'))).toEqual(['new']);
    expect(data(await readAll(log, 'long'))).toEqual(['old']);
  });

  it('answers the same ids for the same idempotency key and events, and appends them once', async () => {
    const log = await maker.make();
    const idempotency = { principal: 'ann', key: 'k' };
    const first = await log.append([event('a', '1'), event('b', '2')], { idempotency });
    expect(await log.append([event('a', '1'), event('b', '2')], { idempotency })).toEqual(first);
    expect(data(await readAll(log, 'a'))).toEqual(['1']);
  });

  it('refuses an idempotency key for other events, and changes nothing', async () => {
    const log = await maker.make();
    const idempotency = { principal: 'ann', key: 'k' };
    await log.append([event('a', '1')], { idempotency });
    for (const other of [[event('a', '2')], [event('b', '1')], [event('a', '1'), event('a', '1')], []]) {
      await expect(log.append(other, { idempotency })).rejects.toMatchObject({
        code: 'conflict',
      } satisfies Partial<LogError>);
    }
    expect(data(await readAll(log, 'a'))).toEqual(['1']);
    expect((await readAll(log, 'b')).last).toBe(0);
  });

  it('keeps the idempotency keys of principals apart, however they are spelled', async () => {
    const log = await maker.make();
    const keys = [
      { principal: 'ann', key: 'bk' },
      { principal: 'annb', key: 'k' },
      { principal: 'ann:b', key: 'k' },
      { principal: 'ann', key: 'b:k' },
    ];
    for (const [i, idempotency] of keys.entries()) await log.append([event('a', String(i))], { idempotency });
    expect(data(await readAll(log, 'a'))).toEqual(['0', '1', '2', '3']);
  });

  it('remembers a bounded number of idempotency keys per principal and forgets the oldest', async () => {
    const log = await maker.make({ maxIdempotencyKeys: 3 });
    const publish = (principal: string, key: string) =>
      log.append([event('a', key)], { idempotency: { principal, key } });
    await publish('bob', '0');
    for (const key of ['1', '2', '3', '4']) {
      await publish('ann', key);
      await sleep(2); // their age is in ms
    }
    await publish('ann', '4');
    await publish('bob', '0');
    await publish('ann', '1');
    expect(data(await readAll(log, 'a'))).toEqual(['0', '1', '2', '3', '4', '1']);
  });

  it('knows the names of its channels and finds them by pattern', async () => {
    const log = await maker.make();
    await log.append([event('b.1'), event('a.2'), event('a.1'), event('a.1.x')]);
    expect(await log.names('a.*')).toEqual(['a.1', 'a.2']);
    expect(await log.names('#')).toEqual(['a.1', 'a.1.x', 'a.2', 'b.1']);
    expect(await log.names('c')).toEqual([]);
    expect(await log.index(0)).toEqual({
      forgot: 0,
      last: new Map([
        ['b.1', 1],
        ['a.2', 2],
        ['a.1', 3],
        ['a.1.x', 4],
      ]),
    });
  });

  it('forgets the names that were quiet longest, and remembers that something was there', async () => {
    const log = await maker.make({ maxNames: 3 });
    await log.append(['a', 'b', 'c', 'a'].map((name) => event(name)));
    await log.append([event('d')]);
    expect(await log.names('#')).toEqual(['a', 'c', 'd']);
    // "b" had number 2: whoever had nothing after it cannot be told apart from one who missed it.
    expect(await readAll(log, 'b')).toEqual({ events: [], last: 2 });
    await log.append([event('b', 'again')]);
    expect((await readAll(log, 'b')).events).toMatchObject([{ seq: 6, prev: 2, prevForgotten: true, data: 'again' }]);
    expect((await readAll(log, 'd')).events).toMatchObject([{ seq: 5, prev: 0, prevForgotten: true }]);
    expect((await log.index(0)).forgot).toBe(3);
  });

  it('announces what is followed, in order, and nothing else', async () => {
    const log = await maker.make();
    const { feed, events, opened } = listen(log);
    await opened();
    await feed.follow(['a', 'b']);
    await log.append([event('a', '1'), event('c', '2'), event('b', '3')]);
    await log.append([event('a', '4')]);
    await feed.mark();
    expect(events.map((e) => e.data)).toEqual(['1', '3', '4']);
    expect(events).toEqual([
      ...(await readAll(log, 'a')).events.slice(0, 1),
      ...(await readAll(log, 'b')).events,
      ...(await readAll(log, 'a')).events.slice(1),
    ]);
    feed.unfollow(['a']);
    await feed.followAll();
    await log.append([event('a', '5'), event('c', '6')]);
    await feed.mark();
    expect([...new Set(events.map((e) => e.data))]).toEqual(['1', '3', '4', '5', '6']);
  });

  it('brings a mark back behind everything that was appended before it', async () => {
    const log = await maker.make();
    const { feed, events, marks, opened } = listen(log);
    await opened();
    await feed.follow(['a']);
    const appended = log.append(Array.from({ length: 50 }, () => event('a')));
    const [mark] = await Promise.all([appended.then(() => feed.mark()), appended]);
    expect(mark.head.seq).toBe(50);
    expect(events).toHaveLength(50);
    expect(marks.at(-1)).toEqual(mark);
    expect(Math.abs(mark.time - log.now(0))).toBeLessThan(100);
  });

  it('starts another epoch when this one is found broken, once, and goes on with the numbers', async () => {
    const log = await maker.make();
    const { feed, opened } = listen(log);
    await opened();
    const [before] = await log.append([event('a', 'old')]);
    const epoch = (before as { epoch: number }).epoch;
    const first = await feed.mark(epoch);
    expect(first.epoch).not.toBe(epoch);
    expect((await feed.mark(epoch)).epoch).toBe(first.epoch);
    const [after] = await log.append([event('a', 'new')]);
    expect(after).toMatchObject({ seq: 2, epoch: first.epoch });
    expect(data(await readAll(log, 'a'))).toEqual(['old', 'new']);
  });

  it('gives the head of an empty log', async () => {
    const log = await maker.make();
    const page = await log.read(0, ['a'], ORIGIN, 10);
    expect(page.horizon.seq).toBe(0);
    expect(page.channels.get('a')).toEqual({ events: [], last: 0 });
    expect(await log.append([])).toEqual([]);
  });
});
