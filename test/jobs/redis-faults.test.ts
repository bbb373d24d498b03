import type { Job } from '../../src/jobs/writer.ts';
import { eventually } from '../streams/logs.ts';
import { follow, redisPlace, testKind } from './replicas.ts';

describe('what jobs survive with Redis', () => {
  const kind = testKind();
  const place = redisPlace();
  const times = { renewMs: 100, lookMs: 100, holdOffMs: 60_000 };
  beforeAll(() => place.start());
  beforeEach(() => place.clear());
  afterAll(() => place.stop());

  // What is announced does not reach all replicas in the same moment. A client that moved to one which had not heard of
  // its last event yet was told that there is no such number, and got everything again.
  it('does not start over with a client that knows more than the replica it has moved to', async () => {
    const a = await place.replica({ kinds: [kind], times });
    const b = await place.replica({ kinds: [kind], times });
    let job: Job | undefined;
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (running) => {
      job = running;
      await new Promise((resolve) => {
        running.signal.addEventListener('abort', resolve);
      });
    });
    await job?.emit('1');
    const here = await follow(a, id);
    const there = await follow(b, id);
    await eventually(() => there.last === 1);
    await place.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await job?.emit('2');
    await eventually(() => here.last === 2);
    const moved = await follow(b, id, 2);
    expect(moved).toMatchObject({ seen: [], resets: [] });
    await job?.end('completed', '3');
    await eventually(() => moved.ended !== undefined && there.ended !== undefined);
    expect(moved).toMatchObject({ seen: ['3'], resets: [] });
    expect(there).toMatchObject({ seen: ['1', '2', '3'], resets: [] });
  });

  // Owner and store were gone. Of the replicas that followed the job, one that had seen less of it was the first to end
  // it, with an event whose number another one knew as something else. That one closed its streams without any end.
  it('shows the end that was written behind less than it has shown itself', async () => {
    const a = await place.replica({ kinds: [kind], times });
    const b = await place.replica({ kinds: [kind], times });
    let job: Job | undefined;
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (running) => {
      job = running;
      await new Promise((resolve) => {
        running.signal.addEventListener('abort', resolve);
      });
    });
    for (let i = 1; i <= 5; i++) await job?.emit(String(i));
    const follower = await follow(b, id);
    await eventually(() => follower.last === 5);
    await place.kill(a);
    await place.admin.flushall();
    const { state, keepMs, logMs } = { state: 'interrupted', keepMs: 60_000, logMs: 60_000 } as const;
    await b.store.restore({
      ...{ id, kind: kind.name, principal: 'ann', owner: '', about: '', created: 0, cancel: undefined },
      ...{ approvals: new Map(), snapshot: undefined, from: 4, last: 5 },
      events: [
        { seq: 4, data: 'note' },
        { seq: 5, data: 'the end', end: state },
      ],
      end: { state, keepMs, logMs, snapshot: undefined },
    });
    await eventually(() => follower.ended !== undefined);
    expect(follower).toMatchObject({ resets: ['ahead 4 '], ended: 'interrupted' });
    expect(follower.seen).toEqual(['1', '2', '3', '4', '5', 'note', 'the end']);
  });

  // A server was started again from an older copy. A job that had ended since was running there again, its owner was alive
  // and had done with it: nobody would ever have ended it.
  it('ends a job of its own that runs again in a store that went back', async () => {
    const quick = { ...times, lingerMs: 10 };
    const a = await place.replica({ kinds: [kind], times: quick });
    const b = await place.replica({ kinds: [kind], times: quick });
    const { id } = await a.jobs.start({ kind, principal: 'ann', events: ['one'] }, (job) =>
      job.end('completed', 'end'),
    );
    await eventually(async () => (await b.jobs.find(id))?.state === 'completed');
    await eventually(() => !a.jobs.owns(id));
    const hash = (await place.admin.keys('*')).find((key) => key.endsWith(`:j:${id}`)) ?? '';
    const [base] = hash.split(':j:');
    await place.admin
      .multi()
      .del(`${hash}:l`)
      .xadd(`${hash}:l`, '1-0', 'd', 'one')
      .hset(hash, { state: 'running', last: '1' })
      .sadd(`${base}:jobs:${a.name}`, id)
      .sadd(`${base}:owners`, a.name)
      .hset(`${base}:meta`, 'run', 'another server')
      .exec();
    const late = await follow(b, id);
    await eventually(() => late.ended !== undefined);
    expect(late).toMatchObject({ ended: 'interrupted', resets: [] });
    expect(late.seen).toEqual(['one', 'note 2', 'store_lost 3: The record of how this job ended is gone.']);
  });

  // The store went back, and the owner was about to bring the rest when a client came to a replica that did not know the
  // job yet. It was told that its number lies beyond the end, and got everything again.
  it('waits for the owner when a client knows more than a store that went back', async () => {
    const a = await place.replica({ kinds: [kind], times });
    const b = await place.replica({ kinds: [kind], times });
    let job: Job | undefined;
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (running) => {
      job = running;
      await new Promise((resolve) => {
        running.signal.addEventListener('abort', resolve);
      });
    });
    for (let i = 1; i <= 3; i++) await job?.emit(String(i));
    await eventually(async () => (await b.jobs.find(id))?.last === 3);
    const hash = (await place.admin.keys('*')).find((key) => key.endsWith(`:j:${id}`)) ?? '';
    const meta = `${hash.split(':j:')[0]}:meta`;
    const back = place.admin.multi().xdel(`${hash}:l`, '3-0').xsetid(`${hash}:l`, '2-0').hset(hash, 'last', '2');
    await back.hset(meta, 'run', 'another server').exec();
    const moved = await follow(b, id, 3);
    await job?.end('completed', '4');
    await eventually(() => moved.ended !== undefined);
    expect(moved).toMatchObject({ resets: [], seen: ['4'] });
  });

  // The replica that had seen the first end still held the younger half of that stream. Who came there for all of it was
  // given the beginning of the one stream and the end of the other, over and over.
  it('does not mix a stream with one that ended otherwise', async () => {
    const small = testKind({ name: 'small', maxEvents: 10 });
    const a = await place.replica({ kinds: [small], times });
    const b = await place.replica({ kinds: [small], times });
    let go: () => void = () => {};
    const told = new Promise<void>((resolve) => {
      go = resolve;
    });
    const { id } = await a.jobs.start({ kind: small, principal: 'ann' }, async (job) => {
      await told;
      for (;;) await job.emit('more');
    });
    const first = await follow(b, id);
    go();
    await eventually(() => first.ended !== undefined);
    const whole = { id, kind: 'small', principal: 'ann', owner: '', about: '', created: 0, cancel: undefined };
    const end = { state: 'interrupted', keepMs: 60_000, logMs: 60_000, snapshot: undefined } as const;
    const events = [
      { seq: 1, data: 'one' },
      { seq: 2, data: 'the end', end: end.state },
    ];
    await place.kill(a);
    await place.admin.flushall();
    await b.store.restore({ ...whole, approvals: new Map(), snapshot: undefined, from: 1, last: 2, events, end });
    const late = await follow(b, id);
    await eventually(() => late.ended !== undefined);
    expect(late.seen).toEqual(['one', 'the end']);
    expect(first.resets).toEqual([]);
  });

  // A server that had not got the last event took over, and the owner was gone with the old one. Another replica ended
  // what was left; under the number of the lost event there was something else now. Who had seen it was not told.
  it('tells those who have seen an event that is no longer there', async () => {
    const a = await place.replica({ kinds: [kind], times });
    const b = await place.replica({ kinds: [kind], times });
    let job: Job | undefined;
    const { id } = await a.jobs.start({ kind, principal: 'ann' }, async (running) => {
      job = running;
      await new Promise((resolve) => {
        running.signal.addEventListener('abort', resolve);
      });
    });
    for (let i = 1; i <= 3; i++) await job?.emit(String(i));
    const follower = await follow(b, id);
    await eventually(() => follower.last === 3);
    await place.kill(a);
    const hash = (await place.admin.keys('*')).find((key) => key.endsWith(`:j:${id}`)) ?? '';
    await place.admin.multi().xdel(`${hash}:l`, '3-0').xsetid(`${hash}:l`, '2-0').hset(hash, 'last', '2').exec();
    const record = await b.jobs.find(id);
    if (!record) throw new Error('no record');
    const events = [
      { seq: 3, data: 'note' },
      { seq: 4, data: 'the end', end: 'interrupted' },
    ] as const;
    const end = { state: 'interrupted', keepMs: 60_000, logMs: 60_000, snapshot: undefined } as const;
    expect(await b.store.reap(record, { events, asks: [], end })).toBe('reaped');
    await eventually(() => follower.ended !== undefined);
    expect(follower.resets).toEqual(['ahead 1 ']);
    expect(follower.seen).toEqual(['1', '2', '3', '1', '2', 'note', 'the end']);
  });

  // The store was empty for a moment. A replica that held the younger half of a finished stream took it for all that is
  // left, although the owner had the rest and was about to bring it.
  it('waits for the owner before it takes the rest of a finished stream for all of it', async () => {
    const small = testKind({ name: 'small', maxEvents: 10 });
    const a = await place.replica({ kinds: [small], times });
    const b = await place.replica({ kinds: [small], times });
    let go: () => void = () => {};
    const told = new Promise<void>((resolve) => {
      go = resolve;
    });
    const { id } = await a.jobs.start({ kind: small, principal: 'ann' }, async (job) => {
      await told;
      for (;;) await job.emit('more');
    });
    const first = await follow(b, id);
    go();
    await eventually(() => first.ended !== undefined);
    await place.admin.flushall();
    const late = await follow(b, id);
    await eventually(() => late.ended !== undefined);
    expect(late).toMatchObject({ resets: [], seen: first.seen });
  });
});
