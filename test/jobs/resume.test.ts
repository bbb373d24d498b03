import { setTimeout as sleep } from 'node:timers/promises';
import { EventSource } from 'eventsource';
import type { Job } from '../../src/jobs/writer.ts';
import { eventually } from '../streams/logs.ts';
import { rawRequest } from '../support/raw-request.ts';
import { RawStream } from '../support/raw-stream.ts';
import { listing, memoryPlace, type Place, type Replica, redisPlace, testKind } from './replicas.ts';
import { Site } from './site.ts';

const places: Place[] = [memoryPlace(), redisPlace()];

const expected = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, i) => `id: ${from + i}\ndata: event ${from + i} é\u2028\n\n`).join('');

describe.each(places)('the stream of a job over HTTP on $name', (place) => {
  const kind = testKind();
  let a: Replica;
  let b: Replica;
  let sites: [Site, Site];

  beforeAll(() => place.start());
  afterAll(() => place.stop());
  beforeEach(async () => {
    await place.clear();
    a = await place.replica({ kinds: [kind] });
    b = await place.replica({ kinds: [kind] });
    sites = [await new Site(a).listen(), await new Site(b).listen()];
  });
  afterEach(async () => {
    for (const site of sites) await site.stop();
  });

  const begin = async (events = 0, wanted = kind): Promise<{ id: string; job: Job }> => {
    let begun: (job: Job) => void = () => {};
    const job = new Promise<Job>((resolve) => {
      begun = resolve;
    });
    const { id } = await a.jobs.start({ kind: wanted, principal: 'ann' }, async (running) => {
      for (let i = 0; i < events; i++) await running.emit((seq) => `event ${seq} é\u2028`);
      begun(running);
      await new Promise<void>((resolve) => {
        running.signal.addEventListener('abort', () => resolve());
      });
    });
    return { id, job: await job };
  };

  it('is byte for byte the same when the socket is cut after every event and resumed on the other replica', async () => {
    const events = 200;
    const { id, job } = await begin();
    const whole = sites.map(({ port }) => new RawStream(port, `/${id}`));
    const emitting = (async () => {
      for (let i = 1; i < events; i++) {
        await job.emit((seq) => `event ${seq} é\u2028`);
        if (i % 10 === 0) await sleep(1);
      }
      await job.end('completed', (seq) => `event ${seq} é\u2028`);
    })();
    let pieces = '';
    for (let last = 0; last < events; ) {
      const { port } = sites[last % 2] as Site;
      const stream = new RawStream(port, `/${id}?after=0`, last > 0 ? { 'Last-Event-ID': String(last) } : {});
      await eventually(() => stream.frames.length > 0);
      const [first = ''] = stream.frames;
      stream.close();
      pieces += `${first}\n\n`;
      last++;
    }
    await emitting;
    expect(pieces).toBe(expected(1, events));
    for (const stream of whole) {
      await eventually(() => stream.ended);
      expect(stream.body).toBe(expected(1, events));
    }
    for (const { port } of sites) {
      expect((await rawRequest(port, { path: `/${id}`, headers: { 'Last-Event-ID': String(events) } })).status).toBe(
        204,
      );
    }
  });

  it('begins at the beginning, behind `after`, or behind Last-Event-ID, which wins', async () => {
    const { id, job } = await begin(4);
    await job.end('completed', (seq) => `event ${seq} é\u2028`);
    for (const { port } of sites) {
      const read = async (path: string, headers = {}): Promise<string> => {
        const stream = new RawStream(port, path, headers);
        await eventually(() => stream.ended);
        expect(stream.status).toBe(200);
        return stream.body;
      };
      expect(await read(`/${id}`)).toBe(expected(1, 5));
      expect(await read(`/${id}?after=3`)).toBe(expected(4, 5));
      expect(await read(`/${id}?after=4`, { 'Last-Event-ID': '2' })).toBe(expected(3, 5));
      expect(await read(`/${id}`, { 'Last-Event-ID': '' })).toBe(expected(1, 5));
      for (const [given, reason] of [
        ['17', 'ahead'],
        ['x', 'unknown'],
        ['-1', 'unknown'],
        ['1e3', 'unknown'],
      ]) {
        const all = `event: resync\ndata: ${reason} 1 \n\n${expected(1, 5)}`;
        expect(await read(`/${id}`, { 'Last-Event-ID': given as string })).toBe(all);
      }
      expect((await rawRequest(port, { path: `/${id}?after=5` })).status).toBe(204);
      expect((await rawRequest(port, { path: `/${id}`, headers: { principal: 'bob' } })).status).toBe(404);
      expect((await rawRequest(port, { path: '/nothing' })).status).toBe(404);
    }
  });

  it('begins with a snapshot when the position has collapsed', async () => {
    const long = testKind({ name: 'long', maxEvents: 4, snapshot: listing });
    a.jobs.declare(long);
    b.jobs.declare(long);
    const { id, job } = await begin(0, long);
    for (let i = 1; i <= 6; i++) {
      await job.emit(String(i));
      await eventually(async () => (await a.jobs.find(id))?.last === i);
    }
    await job.end('completed', 'end');
    const from = (await a.jobs.find(id))?.from ?? 0;
    expect(from).toBeGreaterThan(3);
    for (const { port } of sites) {
      const stream = new RawStream(port, `/${id}?after=1`);
      await eventually(() => stream.ended);
      const before = Array.from({ length: from - 1 }, (_, i) => i + 1).join('|');
      expect(stream.frames[0]).toBe(`event: snapshot\ndata: collapsed ${from} ${before}`);
      expect(stream.frames.at(-1)).toBe('id: 7\ndata: end');
      expect(stream.frames).toHaveLength(1 + 7 - from + 1);
    }
  });

  it('brings an EventSource to the end over cuts, and stops it there', async () => {
    const { id, job } = await begin();
    const seen: string[] = [];
    const statuses: number[] = [];
    const source = new EventSource(`http://127.0.0.1:${sites[1].port}/${id}`, {
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        statuses.push(answer.status);
        return answer;
      },
    });
    source.onmessage = ({ data }) => seen.push(data);
    let stopped = false;
    source.onerror = () => {
      stopped = source.readyState === EventSource.CLOSED;
    };
    await job.emit('1');
    await eventually(() => seen.length === 1);
    for (const stream of sites[1].streams) stream.drain(1);
    await job.emit('2');
    await eventually(() => seen.length === 2);
    await job.end('completed', '3');
    await eventually(() => stopped);
    expect(seen).toEqual(['1', '2', '3']);
    expect(statuses).toEqual([200, 200, 204]); // at first, after the cut, and told that nothing more comes
    source.close();
  });

  it('writes frame by frame, one in each turn, when it is told to', async () => {
    const site = await new Site(b, { frameByFrame: true }).listen();
    const { id, job } = await begin(20);
    await job.end('completed', 'end');
    let sharing = 0;
    let written = false;
    site.wrote = () => {
      if (written) sharing++;
      written = true;
      setImmediate(() => {
        written = false;
      });
    };
    const stream = new RawStream(site.port, `/${id}`);
    await eventually(() => stream.ended);
    expect(stream.frames).toHaveLength(21);
    expect(sharing).toBe(0);
    await site.stop();
  });

  it('stays open behind the end for as long as it is told to', async () => {
    const site = await new Site(b, { lingerMs: 50 }).listen();
    const { id, job } = await begin(1);
    const stream = new RawStream(site.port, `/${id}`);
    await job.end('completed', 'end');
    await eventually(() => stream.frames.length === 2);
    expect(stream.ended).toBe(false);
    await eventually(() => stream.ended);
    expect(site.reasons).toEqual(['finished']);
    await site.stop();
  });

  it('sends a heartbeat only after a time without events', async () => {
    let now = 1_000_000_000_000;
    jest.spyOn(Date, 'now').mockImplementation(() => now);
    try {
      const site = await new Site(a, { heartbeatWhenIdle: true, heartbeatSeconds: 30 }, () => now).listen();
      const { id, job } = await begin(1);
      const stream = new RawStream(site.port, `/${id}`);
      await eventually(() => stream.frames.length === 1);
      const pass = (seconds: number): void => {
        for (let i = 0; i < seconds; i++) {
          now += 1_000;
          site.wheel.turn();
        }
      };
      pass(20);
      await job.emit('two');
      await eventually(() => stream.frames.length === 2);
      pass(28);
      await job.emit('three');
      await eventually(() => stream.frames.length === 3);
      pass(31);
      await eventually(() => stream.frames.length === 4);
      expect(stream.frames.map((text) => text.split('\n')[0])).toEqual(['id: 1', 'id: 2', 'id: 3', ': keepalive']);
      await site.stop();
    } finally {
      jest.restoreAllMocks();
    }
  });

  it('ends when its token does', async () => {
    const site = await new Site(a, { expiresAt: Date.now() + 10 }).listen();
    const { id } = await begin(1);
    const stream = new RawStream(site.port, `/${id}`);
    await eventually(() => stream.ended);
    expect(site.reasons).toEqual(['token_expired']);
    await site.stop();
  });

  it('lets go of a job when its readers have left', async () => {
    const { id, job } = await begin(1);
    const stream = new RawStream(sites[1].port, `/${id}`);
    await eventually(() => stream.frames.length === 1);
    stream.close();
    await eventually(() => sites[1].reasons.length === 1);
    expect(sites[1].reasons).toEqual(['client']);
    await job.end('completed', 'end');
  });
});
