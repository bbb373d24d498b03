import { setTimeout as sleep } from 'node:timers/promises';
import { Hub } from '../../src/streams/hub.ts';
import type { FeedListener, LimitsOf, NewEvent, Page, StoredEvent } from '../../src/streams/log.ts';
import { MemoryLog } from '../../src/streams/memory-log.ts';
import type { Position } from '../../src/streams/position.ts';
import type { Sink } from '../../src/streams/sink.ts';
import { FaultyLog } from '../simulation/faulty-log.ts';
import { PlainEncoder, Recorder, settled } from './recorder.ts';

const HOUR = 3_600_000;
const limitsOf: LimitsOf = (channel) => ({ events: channel.startsWith('small') ? 3 : 100, ageMs: 300_000 });

/** The memory log with a clock of its own, whose reads can be counted and whose feed can be made to lose events. */
class WatchedLog extends MemoryLog {
  reads = 0;
  lose: (event: StoredEvent) => boolean = () => false;
  listener: FeedListener | undefined;

  constructor(partitions = 1, clock: { now: number } = { now: 1_000_000 }, limits = limitsOf) {
    super({ limitsOf: limits, partitions, now: () => clock.now });
  }

  override read(partition: number, channels: readonly string[], after: Position, page: number): Promise<Page> {
    this.reads++;
    return super.read(partition, channels, after, page);
  }

  override subscribe(partition: number, listener: FeedListener) {
    this.listener = listener;
    return super.subscribe(partition, {
      opened: () => listener.opened(),
      closed: () => listener.closed(),
      marked: (mark) => listener.marked(mark),
      event: (epoch, event) => {
        if (!this.lose(event)) listener.event(epoch, event);
      },
    });
  }
}

const hubs: Hub[] = [];
const hubOn = (log: MemoryLog): Hub => {
  const hub = new Hub(log);
  hubs.push(hub);
  return hub;
};
afterEach(() => {
  for (const hub of hubs.splice(0)) hub.close();
});

const events = (channel: string, ...data: string[]): NewEvent[] => data.map((d) => ({ channel, data: d }));

describe('a position that is asked for', () => {
  // A poll whose time is over asks in the middle of a turn: what has arrived in it lies before the position, and would
  // never be delivered to who goes on from there.
  it('has everything before it delivered, also what waits for the end of the turn', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const follower = new Recorder(hub, { names: ['a'] });
    expect(follower.following.position()).toBeUndefined();
    await settled();
    await log.append(events('a', 'one'));
    await Promise.resolve(); // it has arrived; the turn is not over
    const position = follower.following.position();
    expect(follower.story).toEqual(['one']);
    const next = new Recorder(hub, { names: ['a'], cursor: `pos-${position}` });
    await log.append(events('a', 'two'));
    await settled();
    expect(next).toMatchObject({ resumed: true, story: ['two'] });
    expect(follower.story).toEqual(['one', 'two']);
  });
});

describe('following', () => {
  it('begins at the head without an id, and says where that is', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    await log.append(events('a', 'before'));
    const follower = new Recorder(hub, { names: ['a'] });
    await settled();
    expect(follower).toMatchObject({ isConnected: true, resumed: false, story: [] });
    await log.append([...events('a', '1'), ...events('b', 'other'), ...events('a', '2')]);
    await settled();
    expect(follower.story).toEqual(['1', '2']);
  });

  it('goes on exactly after the id that was received last, on another hub too', async () => {
    const log = new WatchedLog();
    const first = new Recorder(hubOn(log), { names: ['a', 'b'] });
    await settled();
    await log.append([...events('a', '1'), ...events('b', '2')]);
    await settled();
    first.following.close();
    await log.append([...events('b', '3'), ...events('a', '4')]);
    const second = new Recorder(hubOn(log), { names: ['a', 'b'], cursor: first.lastId });
    await settled();
    await log.append(events('a', '5'));
    await settled();
    expect(second).toMatchObject({ resumed: true, story: ['3', '4', '5'] });
    expect(second.position).toBe(first.lastId?.slice(4));
  });

  it('can be resumed from its first frame, before any event has come', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const first = new Recorder(hub, { names: ['a'] });
    await settled();
    first.following.close();
    await log.append(events('a', '1'));
    const second = new Recorder(hub, { names: ['a'], cursor: first.lastId });
    await settled();
    expect(second.story).toEqual(['1']);
  });

  it('may add, remove and reorder channels between two connections', async () => {
    const log = new WatchedLog(4);
    const hub = hubOn(log);
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const first = new Recorder(hub, { names: ['a', 'b', 'c'] });
    await settled();
    await log.append(events('a', 'a1'));
    await settled();
    first.following.close();
    await log.append(names.flatMap((name) => events(name, `${name}2`)));
    const second = new Recorder(hub, { names: [...names].reverse(), cursor: first.lastId });
    await settled();
    expect(second.resyncs).toEqual([]);
    expect(second.story.sort()).toEqual(names.map((name) => `${name}2`));
  });

  it('receives each partition in rising order and can be dropped at any event of several partitions', async () => {
    const log = new WatchedLog(4);
    const names = Array.from({ length: 10 }, (_, i) => `n${i}`);
    const start = new Recorder(hubOn(log), { names });
    await settled();
    start.following.close();
    let cursor = start.lastId;
    const story: string[] = [];
    const hub = hubOn(log);
    for (let i = 0; i < 40; i++) {
      await log.append(names.map((name) => ({ channel: name, data: `${name}.${i}` })).slice(0, 1 + (i % 10)));
      const follower = new Recorder(hub, { names, cursor });
      await settled();
      const [one] = follower.batches[0]?.bytes.toString().split(';') ?? [];
      follower.following.close();
      if (!one) continue;
      cursor = `msg-${one.split('@')[1]}`; // only its first event was read
      story.push(one.slice(one.indexOf(':') + 1, one.indexOf('@')));
    }
    const rest = new Recorder(hub, { names, cursor });
    await settled();
    const all = [...story, ...rest.story];
    expect(rest.resyncs).toEqual([]);
    expect(new Set(all).size).toBe(all.length);
    expect(all.length).toBe(40 * 5.5);
  });
});

describe('what a follower is told', () => {
  it('is nothing when its channel was quiet for longer than the buffer keeps', async () => {
    const clock = { now: 1_000_000 };
    const log = new WatchedLog(1, clock);
    const hub = hubOn(log);
    const first = new Recorder(hub, { names: ['quiet', 'busy'] });
    await settled();
    await log.append(events('quiet', '1'));
    await settled();
    first.following.close();
    clock.now += 10 * HOUR;
    await log.append(events('elsewhere', 'x'));
    const second = new Recorder(hubOn(log), { names: ['quiet', 'busy'], cursor: first.lastId });
    await settled();
    expect(second).toMatchObject({ resumed: true, story: [] });
  });

  it('names only the channel that lost something, and goes on with what is kept', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const first = new Recorder(hub, { names: ['small', 'big'] });
    await settled();
    first.following.close();
    await log.append([...events('small', 's1', 's2'), ...events('big', 'b1'), ...events('small', 's3', 's4')]);
    const second = new Recorder(hub, { names: ['small', 'big'], cursor: first.lastId });
    await settled();
    expect(second.story).toEqual(['!expired small', 's2', 'b1', 's3', 's4']);
    expect(second.resumed).toBe(true);
  });

  it('is expired when an event grew too old, from the mirror as from the log', async () => {
    const clock = { now: 1_000_000 };
    const log = new WatchedLog(1, clock);
    const [hub, other] = [hubOn(log), hubOn(log)];
    const first = new Recorder(hub, { names: ['a'] });
    await settled();
    const cursor = first.lastId;
    await log.append(events('a', 'old'));
    await settled();
    clock.now += 300_001;
    await log.append(events('a', 'new'));
    for (const which of [hub, other]) {
      const again = new Recorder(which, { names: ['a'], cursor });
      await settled();
      expect(again.story).toEqual(['!expired a', 'new']);
    }
  });

  it('is told of a loss once, however many pages it takes to catch up', async () => {
    const log = new WatchedLog();
    const first = new Recorder(hubOn(log), { names: ['small'] });
    await settled();
    for (let i = 0; i < 30; i++)
      await log.append([...events('big', `b${i}`), ...(i > 25 ? events('small', `s${i}`) : [])]);
    const hub = new Hub(log, { mirrorEvents: 1, pageEvents: 8 });
    hubs.push(hub);
    const second = new Recorder(hub, { names: ['small', 'big'], cursor: `pos-${first.position}` });
    await settled();
    expect(log.reads).toBeGreaterThan(3);
    expect(second.story.filter((text) => text.startsWith('!'))).toEqual(['!expired small']);
    expect(second.story).toHaveLength(1 + 30 + 3);
  });

  // The numbers up to which losses had been told were kept over a change of epoch. When they began again from 1, every
  // loss up to the old numbers passed for told.
  it('is told of a loss in a new epoch although the numbers of the old one were higher', async () => {
    let current = new WatchedLog();
    const log = new FaultyLog(() => current);
    const hub = new Hub(log, { mirrorEvents: 1, pageEvents: 4 });
    hubs.push(hub);
    const follower = new Recorder(hub, { names: ['small', 'big'] });
    await settled();
    follower.takes = false;
    await current.append(events('big', 'b'));
    await settled();
    await current.append([
      ...events('big', ...Array.from({ length: 50 }, (_, i) => `b${i}`)),
      ...events('small', '1', '2', '3', '4', '5'),
    ]);
    follower.following.resume(); // it takes one page, is told that events of "small" are lost, and stops again
    await settled();
    expect(follower.story.filter((text) => text.startsWith('!'))).toEqual(['!expired small']);
    current = new WatchedLog();
    log.breakFeeds(); // the store was emptied
    await sleep(50);
    await current.append([...events('small', 'n1'), ...events('big', 'x')]);
    follower.following.resume(); // told of the new epoch, and takes what is there
    await settled();
    await current.append(events('small', 'n2', 'n3', 'n4', 'n5', 'n6'));
    follower.takes = true;
    follower.following.resume();
    await settled();
    const after = follower.story.slice(follower.story.indexOf('!epoch_changed small,big'));
    expect(after).toEqual(['!epoch_changed small,big', 'n1', 'x', '!expired small', 'n4', 'n5', 'n6']);
  });

  it('is nothing when the store has forgotten the name of a channel that it follows', async () => {
    const log = new MemoryLog({ limitsOf, maxNames: 2 });
    const hub = hubOn(log);
    const follower = new Recorder(hub, { names: ['a'] });
    const pattern = new Recorder(hub, { patterns: ['a'] });
    await settled();
    await log.append(events('a', '1'));
    for (const other of ['b', 'c', 'd']) await log.append(events(other, 'x'));
    expect(await log.names('a')).toEqual([]);
    await log.append(events('a', '2'));
    await settled();
    for (const { story } of [follower, pattern]) expect(story).toEqual(['1', '2']);
    expect(hub.stats().gaps).toBe(0);
  });

  it('is told again after a drop right after the notice, because the notice has no id', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const first = new Recorder(hub, { names: ['small'] });
    await settled();
    first.following.close();
    await log.append(events('small', '1', '2', '3', '4'));
    for (let i = 0; i < 2; i++) {
      const again = new Recorder(hub, { names: ['small'], cursor: first.lastId });
      await settled();
      again.following.close();
      expect(again.story[0]).toBe('!expired small');
    }
  });

  it.each([
    ['malformed', 'garbage'],
    ['empty', ''],
    ['of a job', '17'],
  ])('is unknown_id when its id is %s, and gets all that is kept', async (_, cursor) => {
    const log = new WatchedLog();
    await log.append(events('small', '1', '2', '3', '4'));
    const follower = new Recorder(hubOn(log), { names: ['small', 'none'], cursor });
    await settled();
    expect(follower).toMatchObject({ position: undefined, resumed: false });
    expect(follower.story).toEqual(['!unknown_id small,none', '2', '3', '4']);
  });

  it('is epoch_changed when the store is another one', async () => {
    const before = new Recorder(hubOn(new WatchedLog()), { names: ['a'] });
    await settled();
    const log = new WatchedLog();
    await log.append(events('a', '1'));
    const after = new Recorder(hubOn(log), { names: ['a'], cursor: before.lastId });
    await settled();
    expect(after.story).toEqual(['!epoch_changed a', '1']);
    expect(after.position).toBeUndefined();
  });

  it('is ahead_of_head when its position has never been reached', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const first = new Recorder(hub, { names: ['a'] });
    await settled();
    await log.append(events('a', '1', '2'));
    await settled();
    // The number is in the last digits but 26 bits: one that is 64 higher differs in the 26th digit only.
    const id = first.lastId as string;
    const beyond = `${id.slice(0, 31)}f${id.slice(32)}`;
    const second = new Recorder(hub, { names: ['a'], cursor: beyond });
    await settled();
    expect(second.story).toEqual(['!ahead_of_head a', '1', '2']);
  });

  it('is epoch_changed when numbers fall while it follows, and it gets all that is kept', async () => {
    const log = new WatchedLog();
    const follower = new Recorder(hubOn(log), { names: ['a'] });
    await settled();
    const [place] = await log.append(events('a', '1', '2', '3'));
    await settled();
    // The store went back: it announces a number that it has given before.
    log.listener?.event(place?.epoch as number, {
      channel: 'a',
      ms: 1,
      seq: 2,
      prev: 1,
      prevForgotten: false,
      data: 'other',
    });
    await settled();
    await log.append(events('a', '4'));
    await settled();
    expect(follower.story).toEqual(['1', '2', '3', '!epoch_changed a', '1', '2', '3', '4']);
  });

  it('is gap when a live feed loses an event, which then comes late with the position as its id', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const [hit, spared] = [new Recorder(hub, { names: ['a', 'b'] }), new Recorder(hub, { names: ['b'] })];
    await settled();
    log.lose = ({ data }) => data === 'lost';
    await log.append([...events('a', '1', 'lost'), ...events('b', '2')]);
    await settled();
    const before = hit.lastId;
    await log.append(events('a', '3'));
    await settled();
    expect(hit.story).toEqual(['1', '2', '!gap a', 'lost', '3']);
    expect(hit.batches.map(({ bytes }) => bytes.toString()).find((text) => text.includes('lost'))).toBe(
      `2:lost@${before?.slice(4)};`,
    );
    expect(spared.story).toEqual(['2']);
    expect(hub.stats()).toMatchObject({ gaps: 1, resyncs: { gap: 1 } });
  });
});

describe('fan-out', () => {
  it('gives everything of one turn to a group as one batch, encoded once', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const encoder = new PlainEncoder();
    const group = Array.from({ length: 100 }, () => new Recorder(hub, { names: ['b', 'a'], encoder }));
    const reordered = new Recorder(hub, { names: ['a', 'b'], encoder });
    await settled();
    await Promise.all([log.append(events('a', '1')), log.append(events('b', '2', '3'))]);
    await settled();
    const bytes = group[0]?.batches[0]?.bytes;
    for (const { batches, story } of [...group, reordered]) {
      expect(story).toEqual(['1', '2', '3']);
      expect(batches).toHaveLength(1);
      expect(batches[0]?.bytes).toBe(bytes);
    }
    expect(encoder.calls).toBe(3);
  });

  it('keeps no queue for a follower that does not take: it reads on from its place when it does', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const [slow, fast] = [new Recorder(hub, { names: ['a'] }), new Recorder(hub, { names: ['a'] })];
    await settled();
    slow.takes = false;
    for (let i = 0; i < 50; i++) {
      await log.append(events('a', String(i)));
      await settled();
    }
    expect(slow.story).toEqual(['0']);
    expect(fast.story).toHaveLength(50);
    slow.takes = true;
    slow.following.resume();
    await settled();
    expect(slow.story).toEqual(fast.story);
    expect(log.reads).toBe(0);
    await log.append(events('a', 'live'));
    await settled();
    expect(slow.story.at(-1)).toBe('live');
  });

  it('gives a follower that catches up no more at once than it has room for, from the mirror and from the log', async () => {
    const log = new WatchedLog();
    const first = new Recorder(hubOn(log), { names: ['a', 'b'] });
    await settled();
    const all = Array.from({ length: 60 }, (_, i) => String(i));
    await log.append(all.flatMap((data, i) => events(i % 2 ? 'a' : 'b', data)));
    const small = new Hub(log, { mirrorEvents: 5 });
    hubs.push(small);
    for (const hub of [hubOn(log), small]) {
      const second = new Recorder(hub, { names: ['a', 'b'], cursor: `pos-${first.position}` });
      (second as Sink).room = () => 7;
      for (let i = 0; i < 10; i++) await settled();
      expect(second.story).toEqual(all);
      expect(Math.max(...second.batches.map((batch) => batch.events.length))).toBe(7);
    }
  });

  it('tells a slow follower in place when its position is no longer kept', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const slow = new Recorder(hub, { names: ['small'] });
    await settled();
    slow.takes = false;
    for (let i = 1; i <= 9; i++) {
      await log.append(events('small', String(i)));
      await settled();
    }
    slow.takes = true;
    slow.following.resume();
    await settled();
    expect(slow.story).toEqual(['1', '!expired small', '7', '8', '9']);
  });

  it('tells a follower that began in an empty store and then fell behind', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const follower = new Recorder(hub, { names: ['small', 'a'], cursor: 'unknown' });
    await settled();
    follower.takes = false;
    await log.append(events('a', 'x'));
    await settled();
    await log.append(events('small', '1', '2', '3', '4'));
    follower.takes = true;
    follower.following.resume();
    await settled();
    expect(follower.story).toEqual(['!unknown_id small,a', 'x', '!expired small', '2', '3', '4']);
  });

  it('delivers live what no buffer keeps', async () => {
    const log = new WatchedLog(1, undefined, () => ({ events: 0, ageMs: 0 }));
    const follower = new Recorder(hubOn(log), { names: ['a'] });
    await settled();
    await log.append(events('a', '1', '2'));
    await settled();
    expect(follower.story).toEqual(['1', '2']);
  });

  it('replays from memory to any number of followers that come back', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const first = new Recorder(hub, { names: ['a'] });
    await settled();
    first.following.close();
    await log.append(events('a', ...Array.from({ length: 60 }, (_, i) => String(i))));
    await settled();
    const many = Array.from({ length: 200 }, () => new Recorder(hub, { names: ['a'], cursor: first.lastId }));
    await settled();
    for (const { story } of many) expect(story).toHaveLength(60);
    expect(log.reads).toBe(0);
    expect(hub.stats().delivered).toMatchObject({ mirror: 12_000, log: 0 });
  });

  it('reads an equal page once for all followers that need it', async () => {
    const log = new WatchedLog();
    const first = new Recorder(hubOn(log), { names: ['a'] });
    await settled();
    await log.append(events('a', ...Array.from({ length: 60 }, (_, i) => String(i))));
    const hub = new Hub(log, { mirrorEvents: 5 });
    hubs.push(hub);
    const encoder = new PlainEncoder();
    const cursor = `pos-${first.position}`;
    const many = Array.from({ length: 200 }, () => new Recorder(hub, { names: ['a'], cursor, encoder }));
    await settled();
    for (const { story } of many) expect(story).toHaveLength(60);
    expect(log.reads).toBe(1);
    expect(encoder.calls).toBe(60);
  });

  it('does not disturb others when a follower leaves in the middle of a delivery', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const all = Array.from({ length: 5 }, () => new Recorder(hub, { names: ['a'] }));
    await settled();
    const [first] = all as [Recorder];
    first.events = () => {
      for (const { following } of all.slice(0, 3)) following.close();
      return true;
    };
    await log.append(events('a', '1'));
    await settled();
    await log.append(events('a', '2'));
    await settled();
    expect(all.map(({ story }) => story.length)).toEqual([0, 0, 0, 2, 2]);
  });
});

describe('patterns', () => {
  it('find channels that exist and those that come, live and from a position', async () => {
    const log = new WatchedLog(3);
    const hub = hubOn(log);
    await log.append(events('a.1', 'before'));
    const first = new Recorder(hub, { patterns: ['a.*'] });
    await settled();
    await log.append([...events('a.1', '1'), ...events('b.1', 'no'), ...events('a.2', '2'), ...events('a.2.x', 'no')]);
    await settled();
    expect([...first.story].sort()).toEqual(['1', '2']);
    first.following.close();
    await log.append([...events('a.3', '3'), ...events('b.2', 'no'), ...events('a.1', '4')]);
    for (const again of [
      new Recorder(hub, { patterns: ['a.*'], cursor: first.lastId }),
      new Recorder(hubOn(log), { patterns: ['a.#'], cursor: first.lastId }),
    ]) {
      await settled();
      expect(again.resyncs).toEqual([]);
      expect([...again.story].sort().slice(0, 2)).toEqual(['3', '4']);
    }
  });

  it('find only what is granted', async () => {
    const log = new WatchedLog();
    const follower = new Recorder(hubOn(log), { patterns: ['#'], granted: ['a.*', 'c'] });
    await settled();
    await log.append([...events('a.1', '1'), ...events('b.1', 'no'), ...events('c', '2'), ...events('c.d', 'no')]);
    await settled();
    expect(follower.story).toEqual(['1', '2']);
  });

  // A channel that was named while the pattern was being attached stood aside until it was loaded, and the pattern's
  // followers, live by then, never got what it had set aside.
  it('miss nothing of a channel that somebody names in the meantime', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    await settled();
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const tails = log.tails.bind(log);
    log.tails = async (partition, channels, count) => {
      if (channels.includes('a.1')) await held;
      return tails(partition, channels, count);
    };
    const pattern = new Recorder(hub, { patterns: ['a.*'] });
    const named = new Recorder(hub, { names: ['a.1'] });
    await settled();
    expect(pattern.isConnected).toBe(true);
    await log.append(events('a.1', '1'));
    await settled();
    release();
    await settled();
    await log.append(events('a.1', '2'));
    await settled();
    expect(pattern.story).toEqual(['1', '2']);
    expect(named.story.slice(-1)).toEqual(['2']);
  });

  it('and names together deliver a channel once', async () => {
    const log = new WatchedLog();
    const hub = hubOn(log);
    const pattern = new Recorder(hub, { patterns: ['a.*'] });
    await settled();
    const both = new Recorder(hub, { names: ['a.1'], patterns: ['a.*', '#'] });
    const named = new Recorder(hub, { names: ['a.1'] });
    await settled();
    await log.append(events('a.1', '1', '2'));
    await settled();
    for (const { story } of [pattern, both, named]) expect(story).toEqual(['1', '2']);
  });
});
