import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineEnvironment } from '../../../src/environments/module/define-environment.ts';
import { Gate } from '../../environments/stage.ts';
import { eventually } from '../../streams/logs.ts';
import { startHosting } from '../../support/environment.ts';
import type { RunningGateway } from '../../support/gateway.ts';
import { type RunningRedis, startRedis } from '../../support/redis.ts';
import { Trainer } from '../../support/trainer.ts';

const setup = new Gate();

const environment = defineEnvironment({
  name: 'paths',
  splits: ['train', 'validation'],
  tasks: {
    count: (split) => (split === 'train' ? 5 : 10_001),
    get: (_, index): { index: number; wait?: boolean } => ({ index }),
  },
  setup: async ({ task }) => {
    if (task.wait) await setup.promise;
  },
  tools: [
    {
      name: 'nap',
      description: 'Takes 30 ms.',
      run: async () => {
        await sleep(30);
        return 'rested';
      },
    },
  ],
  prompt: () => 'Rest.',
});

describe('the routes of ORS', () => {
  let redis: RunningRedis;
  let gateways: RunningGateway[];
  let near: Trainer;
  let far: Trainer;
  beforeAll(async () => {
    redis = await startRedis();
    const env = { SLUICE_ORS_PUBLIC: 'true', SLUICE_ORS_SETUP_WAIT_SECONDS: '1', REDIS_URL: redis.url };
    gateways = await Promise.all([1, 2].map(() => startHosting([environment], { env })));
    for (const { url } of gateways) await eventually(async () => (await fetch(`${url}/readyz`)).status === 200);
    [near, far] = gateways.map(({ url }) => new Trainer(url)) as [Trainer, Trainer];
  });
  afterAll(async () => {
    setup.open();
    near.close();
    far.close();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await redis.stop();
  });

  /** As Python slices the list 0 to 4. */
  it.each<[number | null | undefined, number | null | undefined, number[]]>([
    [undefined, undefined, [0, 1, 2, 3, 4]],
    [null, null, [0, 1, 2, 3, 4]],
    [0, 5, [0, 1, 2, 3, 4]],
    [1, null, [1, 2, 3, 4]],
    [null, 1, [0]],
    [-1, null, [4]],
    [null, -1, [0, 1, 2, 3]],
    [-2, -1, [3]],
    [-99, 99, [0, 1, 2, 3, 4]],
    [4, 5, [4]],
    [5, 9, []],
    [2, 2, []],
    [3, 1, []],
    [0, 0, []],
  ])('slice tasks from %p to %p as Python does', async (start, stop, wanted) => {
    const body = { split: 'train', ...(start !== undefined && { start }), ...(stop !== undefined && { stop }) };
    expect(await near.ask('POST', '/task_range', { body })).toMatchObject({
      status: 200,
      body: { tasks: wanted.map((index) => ({ index })), env_name: 'paths' },
    });
  });

  it('give ten thousand tasks at once and not one more', async () => {
    const ask = (start: number) => near.ask('POST', '/task_range', { body: { split: 'validation', start } });
    expect(await ask(0)).toMatchObject({ status: 400, body: { detail: 'Ask for at most 10000 tasks at a time.' } });
    expect((await ask(1)).body).toMatchObject({ tasks: { length: 10_000 } });
  });

  it('issue session ids as a stream to those who ask for one, and as JSON to all others', async () => {
    const issue = async (accept: string): Promise<[string | null, string]> => {
      const answer = await fetch(`${near.base}/create_session`, { method: 'POST', headers: { Accept: accept } });
      return [answer.headers.get('content-type'), await answer.text()];
    };
    for (const accept of ['text/event-stream', 'application/json, text/event-stream']) {
      const [type, text] = await issue(accept);
      expect(type).toBe('text/event-stream; charset=utf-8');
      const [, id] = /^event: task_id\ndata: ([0-9a-f-]{36})\n\n/.exec(text) ?? [];
      expect(text).toBe(`event: task_id\ndata: ${id}\n\nevent: end\ndata: {"sid":"${id}"}\n\n`);
    }
    const [type, text] = await issue('*/*');
    expect([type, JSON.parse(text)]).toEqual([
      expect.stringContaining('application/json'),
      { sid: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    ]);
  });

  it('delete what is there, what is over and what was only issued; what never was is 404', async () => {
    for (const trainer of [near, far]) {
      const sid = await near.session();
      expect(await trainer.ask('POST', '/delete', { sid })).toMatchObject({ status: 200, body: { sid } });
      expect(await trainer.ask('POST', '/delete', { sid })).toMatchObject({ status: 200, body: { sid } });
      const { sid: issued } = (await near.ask('POST', '/create_session')).body as { sid: string };
      expect(await trainer.ask('POST', '/delete', { sid: issued })).toMatchObject({
        status: 200,
        body: { sid: issued },
      });
      expect(await trainer.ask('POST', '/delete_session', { sid: issued })).toMatchObject({ status: 200 });
      // It was given back, so that nobody has to remember it.
      expect(await trainer.ask('POST', '/delete', { sid: issued })).toMatchObject({ status: 404 });
      expect(await trainer.ask('POST', '/delete', { sid: randomUUID() })).toMatchObject({
        status: 404,
        body: { detail: 'Active environment not found' },
      });
      expect(await trainer.ask('POST', '/delete_session', { sid: randomUUID() })).toMatchObject({ status: 200 });
    }
  });

  it('say on every replica when to try again', async () => {
    const sid = await near.session({ task_spec: { index: 0, wait: true } });
    for (const trainer of [near, far]) {
      const { status, headers } = await trainer.ask('GET', '/prompt', { sid });
      expect([status, headers.get('Retry-After')]).toEqual([503, '5']);
    }
    setup.open();
  });

  it('answer with what no cache keeps', async () => {
    const sid = await near.session();
    const { headers } = await near.ask('GET', '/prompt', { sid });
    expect(headers.get('Cache-Control')).toBe('no-store');
  });

  it('measure in seconds', async () => {
    const sid = await near.session();
    await near.call(sid, 'nap');
    const text = await gateways[0]?.gateway.metrics.registry.metrics();
    const sum = Number(/sluice_ors_call_seconds_sum\{environment="paths",outcome="ok"\} (\S+)/.exec(text ?? '')?.[1]);
    expect(sum).toBeGreaterThan(0.02);
    expect(sum).toBeLessThan(5);
  });
});
