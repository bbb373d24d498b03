import { randomUUID } from 'node:crypto';
import { defineEnvironment } from '../../../src/environments/module/define-environment.ts';
import { Gate } from '../../environments/stage.ts';
import { eventually } from '../../streams/logs.ts';
import { startHosting } from '../../support/environment.ts';
import { type RunningGateway, SECRET } from '../../support/gateway.ts';
import { type RunningRedis, startRedis } from '../../support/redis.ts';
import { Trainer } from '../../support/trainer.ts';

/** What the tools of this test wait for, and have done, by the name that each call gives. */
class Bench {
  readonly runs = new Map<string, number>();
  readonly gates = new Map<string, Gate<string>>();
  readonly log: string[] = [];
  setups = new Map<string, Gate>();

  gate(name: string): Gate<string> {
    const known = this.gates.get(name) ?? new Gate<string>();
    this.gates.set(name, known);
    return known;
  }

  count(name: string): number {
    return this.runs.get(name) ?? 0;
  }
}

const bench = new Bench();

const environment = defineEnvironment({
  name: 'bench',
  splits: ['train'],
  tasks: { count: () => 1, get: (): { setup?: string } => ({}) },
  setup: async ({ task }) => {
    if (task.setup !== undefined) await bench.setups.get(task.setup)?.promise;
  },
  tools: [
    { name: 'echo', description: 'Says it again.', run: ({ text }) => String(text) },
    {
      name: 'wait',
      description: 'Waits for the test.',
      run: async ({ name }) => {
        bench.runs.set(String(name), bench.count(String(name)) + 1);
        return bench.gate(String(name)).promise;
      },
    },
  ],
  prompt: () => 'Go on.',
  teardown: ({ sid }) => {
    bench.log.push(`teardown ${sid}`);
  },
});

interface Site {
  readonly name: string;
  /** Where sessions are created, and where everything else may be asked for. */
  trainers: () => readonly [Trainer, Trainer];
  start(): Promise<void>;
  /** Does something that cuts a stream, and waits until its gateway has noticed: no client comes back faster. */
  left(leave: () => void): Promise<void>;
  stop(): Promise<void>;
}

const siteWith = (name: string, replicas: 1 | 2): Site => {
  let redis: RunningRedis | undefined;
  let gateways: RunningGateway[] = [];
  let trainers: Trainer[] = [];
  /** Streams whose client has left. */
  const lost = async (): Promise<number> => {
    const closed = gateways.map(({ gateway }) =>
      gateway.metrics.registry.getSingleMetric('sluice_streams_closed_total'),
    );
    const values = (await Promise.all(closed.map(async (one) => one?.get()))).flatMap((one) => one?.values ?? []);
    return values.filter(({ labels }) => labels.reason === 'client').reduce((sum, { value }) => sum + value, 0);
  };
  return {
    name,
    trainers: () => [trainers[0] as Trainer, trainers.at(-1) as Trainer],
    start: async () => {
      if (replicas > 1) redis = await startRedis();
      const env = {
        SLUICE_ORS_PUBLIC: 'true',
        SLUICE_ORS_LINGER_SECONDS: '1',
        SLUICE_JWT_SECRET: SECRET,
        SLUICE_ORS_MAX_CALLS_PER_SESSION: '4',
        ...(redis && { REDIS_URL: redis.url }),
      };
      gateways = await Promise.all(Array.from({ length: replicas }, () => startHosting([environment], { env })));
      trainers = gateways.map(({ url }) => new Trainer(url));
      for (const trainer of trainers) {
        await eventually(async () => (await fetch(`${trainer.base}/readyz`)).status === 200);
      }
    },
    left: async (leave) => {
      const before = await lost();
      leave();
      await eventually(async () => (await lost()) > before);
    },
    stop: async () => {
      for (const gate of bench.gates.values()) gate.open('over');
      for (const trainer of trainers) trainer.close();
      await Promise.all(gateways.map((gateway) => gateway.stop()));
      await redis?.stop();
    },
  };
};

describe.each([siteWith('memory', 1), siteWith('two replicas', 2)])('calls ($name)', (site) => {
  let near: Trainer;
  let far: Trainer;
  let sid: string;
  let name: string;
  beforeAll(async () => {
    await site.start();
    [near, far] = site.trainers();
  });
  afterAll(() => site.stop());
  beforeEach(async () => {
    sid = await near.session();
    name = randomUUID();
  });

  it('begin with their task_id and end with the result, on whatever replica', async () => {
    for (const trainer of [near, far]) {
      const called = await trainer.call(sid, 'echo', { text: 'hi' }, { environment: 'BENCH' });
      expect(called).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
      expect(called.frames.map(({ event }) => event)).toEqual(['task_id', 'end']);
      expect(called.comments).toEqual(trainer === near ? [] : [': accepted']); // or it is only guessed that it began
      expect(called.taskId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
      expect(called.result).toEqual({
        ok: true,
        output: { blocks: [{ text: 'hi', detail: null, type: 'text' }], metadata: null, reward: null, finished: false },
      });
    }
  });

  it('cut large results into pieces that make the same when they are put together', async () => {
    const text = 'Ein längerer Text, 🐟 und  mehr. \u2028\r\n'.repeat(6_000);
    const called = await far.call(sid, 'echo', { text });
    expect(called.frames.length).toBeGreaterThan(50);
    expect(called.result).toMatchObject({ output: { blocks: [{ text }] } });
    for (const { event, data } of called.frames) {
      expect(Buffer.byteLength(data)).toBeLessThanOrEqual(4_096);
      expect(data.trim()).toBe(data);
      expect(['task_id', 'chunk', 'end']).toContain(event);
    }
  });

  it('go on when their client leaves, and can be followed again from anywhere while they run and after', async () => {
    const first = near.open(sid, 'wait', { name });
    const { taskId = '' } = await first.begun();
    first.leave();
    const again = far.open(sid, 'wait', { name }, { taskId });
    expect(await again.begun()).toMatchObject({ taskId });
    bench.gate(name).open('at last');
    const { result } = await again.done;
    expect(result).toMatchObject({ ok: true, output: { blocks: [{ text: 'at last' }] } });
    for (const trainer of [near, far]) {
      expect(await trainer.call(sid, 'wait', { name }, { taskId })).toMatchObject({ taskId, result });
    }
    expect(bench.count(name)).toBe(1);
  });

  it('are unknown under ids that never were, of another session, or whose result is no longer kept', async () => {
    const unknown = { status: 200, error: 'unknown task_id', taskId: undefined };
    const called = await near.call(sid, 'echo', { text: 'x' });
    const taskId = called.taskId ?? '';
    for (const id of ['', 'nonsense', randomUUID()]) {
      expect(await far.call(sid, 'echo', { text: 'x' }, { taskId: id })).toMatchObject(unknown);
    }
    const other = await near.session();
    expect(await near.call(other, 'echo', { text: 'x' }, { taskId })).toMatchObject(unknown);
    expect(await far.call(other, 'echo', { text: 'x' }, { taskId })).toMatchObject(unknown);
    await eventually(async () => (await near.call(sid, 'echo', { text: 'x' }, { taskId })).error === 'unknown task_id');
    expect(await near.call(sid, 'echo', { text: 'x' }, { taskId: null })).toMatchObject({ result: { ok: true } });
  });

  it('that are repeated after their client was lost are not run again, wherever they are repeated', async () => {
    const first = near.open(sid, 'wait', { name });
    const { taskId } = await first.begun();
    await site.left(() => first.leave());
    const second = far.open(sid, 'wait', { name });
    expect((await second.begun()).taskId).toBe(taskId);
    bench.gate(name).open('once');
    expect(bench.count(name)).toBe(1);
  });

  it('of an impatient client run once, however often it comes back without having seen an id', async () => {
    const seen = new Set<string | undefined>();
    for (let i = 0; i < 5; i++) {
      const call = (i % 2 === 0 ? near : far).open(sid, 'wait', { name });
      seen.add((await call.begun()).taskId);
      await site.left(() => call.leave());
    }
    bench.gate(name).open('once');
    const { result } = await near.call(sid, 'wait', { name });
    expect(result).toMatchObject({ output: { blocks: [{ text: 'once' }] } });
    expect([seen.size, bench.count(name)]).toEqual([1, 1]);
  });

  it('that are the same run as often as they are asked for while nobody is lost', async () => {
    const calls = [near.open(sid, 'wait', { name }), far.open(sid, 'wait', { name }), near.open(sid, 'wait', { name })];
    const begun = await Promise.all(calls.map((call) => call.begun()));
    expect(new Set(begun.map(({ taskId }) => taskId)).size).toBe(3);
    await eventually(() => bench.count(name) === 3);
    bench.gate(name).open('x');
    const whole = await Promise.all(calls.map((call) => call.done));
    expect(whole.every(({ result }) => result !== undefined)).toBe(true);
    await near.call(sid, 'wait', { name });
    expect(bench.count(name)).toBe(4);
  });

  it('with an idempotency key run once, however they are repeated, and never as something else', async () => {
    const key = randomUUID();
    const calls = [near, far, near].map((trainer) => trainer.open(sid, 'wait', { name }, { key }));
    const ids = await Promise.all(calls.map(async (call) => (await call.begun()).taskId));
    expect(new Set(ids).size).toBe(1);
    bench.gate(name).open('keyed');
    for (const call of calls) expect((await call.done).result).toMatchObject({ ok: true });
    expect(await far.call(sid, 'wait', { name }, { key })).toMatchObject({ taskId: ids[0] });
    expect(await far.call(sid, 'echo', { text: 'x' }, { key })).toMatchObject({
      status: 409,
      body: { detail: expect.stringMatching(/idempotency key/) },
    });
    // The same key in another session is another key.
    const other = await near.session();
    expect((await near.call(other, 'wait', { name }, { key })).taskId).not.toBe(ids[0]);
    expect(bench.count(name)).toBe(2);
    // What is not kept any more is not run again.
    await eventually(async () => {
      const { error } = await near.call(sid, 'wait', { name }, { key });
      return error === 'The result of this call is no longer kept.';
    });
    expect(bench.count(name)).toBe(2);
  });

  it('have their task_id before the setup is over, and are told when it fails', async () => {
    bench.setups.set(name, new Gate());
    const slow = await near.session({ task_spec: { setup: name } });
    const calls = [near.open(slow, 'echo', { text: 'x' }), far.open(slow, 'echo', { text: 'y' })];
    for (const call of calls) await call.begun();
    bench.setups.get(name)?.open();
    for (const call of calls) expect((await call.done).result).toMatchObject({ ok: true });

    bench.setups.set(name, new Gate());
    const broken = await near.session({ task_spec: { setup: name } });
    const waiting = [near.open(broken, 'echo', { text: 'x' }), far.open(broken, 'echo', { text: 'y' })];
    for (const call of waiting) await call.begun();
    bench.setups.get(name)?.fail(new Error('no room'));
    for (const call of waiting) expect((await call.done).error).toBe('Setup failed: no room');
    for (const trainer of [near, far]) {
      const late = await trainer.call(broken, 'echo', { text: 'z' });
      expect(late).toMatchObject({ status: 500, body: { detail: 'Setup failed: no room' } });
      expect(await trainer.ask('GET', '/prompt', { sid: broken })).toMatchObject({ status: 500 });
      expect(await trainer.ask('POST', '/ping', { sid: broken })).toMatchObject({ status: 200 });
    }
  });

  it('beyond the limit of a session are refused for a moment, on whatever replica', async () => {
    const calls = [near, far, near, far].map((trainer) => trainer.open(sid, 'wait', { name }));
    for (const call of calls) await call.begun();
    for (const trainer of [near, far]) {
      const refused = await trainer.call(sid, 'echo', { text: 'x' });
      expect(refused).toMatchObject({
        status: 429,
        headers: { 'retry-after': '1' },
        body: { detail: expect.stringMatching(/4 calls/) },
      });
    }
    bench.gate(name).open('x');
    for (const call of calls) await call.done;
    expect((await far.call(sid, 'echo', { text: 'x' })).result).toMatchObject({ ok: true });
  });

  it('of a session that is deleted end with an error; everything later is gone, everywhere', async () => {
    const calls = [near.open(sid, 'wait', { name }), far.open(sid, 'wait', { name })];
    for (const call of calls) await call.begun();
    const deleting = far.ask('POST', '/delete', { sid });
    for (const call of calls) expect((await call.done).error).toBe('Session deleted');
    bench.gate(name).open('late');
    expect(await deleting).toMatchObject({ status: 200, body: { sid } });
    expect(bench.log.filter((line) => line === `teardown ${sid}`)).toHaveLength(1);
    const gone = { status: 410, body: { detail: 'Session deleted' } };
    for (const trainer of [near, far]) {
      expect(await trainer.call(sid, 'echo', { text: 'x' })).toMatchObject(gone);
      expect(await trainer.call(sid, 'echo', { text: 'x' }, { taskId: calls[0]?.now.taskId ?? '' })).toMatchObject(
        gone,
      );
      for (const path of ['/prompt', '/task_tools'])
        expect(await trainer.ask('GET', path, { sid })).toMatchObject(gone);
      expect(await trainer.ask('POST', '/ping', { sid })).toMatchObject(gone);
      expect(await trainer.ask('POST', '/delete', { sid })).toMatchObject({ status: 200, body: { sid } });
    }
    expect(bench.log.filter((line) => line === `teardown ${sid}`)).toHaveLength(1);
    // The id may be used again, and then it is another session.
    expect(await far.ask('POST', '/create', { sid, body: { split: 'train', index: 0 } })).toMatchObject({
      status: 200,
    });
    expect(await near.ask('GET', '/prompt', { sid })).toMatchObject({ status: 200 });
  });
});
