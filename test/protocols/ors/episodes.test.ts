import { resolve } from 'node:path';
import { eventually } from '../../streams/logs.ts';
import { lab, startHosting } from '../../support/environment.ts';
import type { RunningGateway } from '../../support/gateway.ts';
import { type RunningRedis, startRedis } from '../../support/redis.ts';
import { Trainer } from '../../support/trainer.ts';

const NOTES = resolve('environments/notes');

/** What the episode of each kind looks like. */
const KINDS = [
  {
    kind: 'module',
    name: 'lab',
    splits: [
      { name: 'train', type: 'train' },
      { name: 'test', type: 'test' },
    ],
    tools: ['refuse', 'repeat', 'submit', 'throw', 'wait'],
    taskTools: ['hidden', 'refuse', 'repeat', 'submit', 'throw', 'wait'],
    tasks: [{ n: 0 }, { n: 1 }, { n: 2 }],
    prompt: 'Task 1.',
    steps: [
      ['repeat', { text: 'ab', times: 3 }, { ok: true, output: { blocks: [{ text: 'ababab' }], reward: null } }],
      ['submit', { n: 1 }, { ok: true, output: { reward: 1, finished: true } }],
    ],
  },
  {
    kind: 'mcp',
    name: 'notes',
    splits: [
      { name: 'train', type: 'train' },
      { name: 'test', type: 'test' },
    ],
    tools: ['give_up', 'list_notes', 'read_note', 'write_note'],
    taskTools: ['give_up', 'list_notes', 'read_note', 'write_note'],
    tasks: [{ id: 'milk' }, { id: 'call' }, { id: 'port' }],
    prompt: 'You keep a notebook. Remind me to call Ada',
    steps: [
      ['write_note', { title: 'today', text: 'call Ada' }, { ok: true, output: { reward: null, finished: false } }],
      ['read_note', { title: 'today' }, { ok: true, output: { reward: 1, finished: true } }],
    ],
  },
  {
    kind: 'upstream',
    name: 'relayed',
    splits: [
      { name: 'train', type: 'train' },
      { name: 'test', type: 'test' },
    ],
    tools: ['refuse', 'repeat', 'submit', 'throw', 'wait'],
    taskTools: ['hidden', 'refuse', 'repeat', 'submit', 'throw', 'wait'],
    tasks: [{ n: 0 }, { n: 1 }, { n: 2 }],
    prompt: 'Task 1.',
    steps: [
      ['repeat', { text: 'x ', times: 5_000 }, { ok: true, output: { blocks: [{ text: 'x '.repeat(5_000) }] } }],
      ['submit', { n: 0 }, { ok: true, output: { reward: 0, finished: true } }],
    ],
  },
] as const;

describe.each([1, 2])('a complete episode (%d replicas)', (replicas) => {
  let redis: RunningRedis | undefined;
  let upstream: RunningGateway;
  let gateways: RunningGateway[] = [];
  let trainers: Trainer[] = [];
  beforeAll(async () => {
    if (replicas > 1) redis = await startRedis();
    const open = { SLUICE_ORS_PUBLIC: 'true' };
    upstream = await startHosting([lab('source')], { env: open });
    const others = [
      {
        name: 'notes',
        mcp: { command: process.execPath, args: ['server.js'], cwd: NOTES },
        tasks: { train: `${NOTES}/train.jsonl`, test: `${NOTES}/test.jsonl` },
        prompt: 'You keep a notebook. {wish}',
        submit: { name: 'give_up', description: 'Ends it.', input: { type: 'object' } },
        reward: 'tool == "read_note" && input.title == task.title && output == task.text ? 1.0 : none',
        finished: 'tool == "give_up" || (tool == "read_note" && output == task.text)',
      },
      { name: 'relayed', upstream: upstream.url, environment: 'source' },
    ];
    const env = { ...open, ...(redis && { REDIS_URL: redis.url }) };
    gateways = await Promise.all(Array.from({ length: replicas }, () => startHosting([lab()], { env, others })));
    for (const { url } of gateways) await eventually(async () => (await fetch(`${url}/readyz`)).status === 200);
    trainers = gateways.map(({ url }) => new Trainer(url));
  });
  afterAll(async () => {
    for (const trainer of trainers) trainer.close();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await upstream.stop();
    await redis?.stop();
  });

  it.each(KINDS)('of the kind $kind, all sixteen endpoints in their order', async (kind) => {
    const { name, splits, tools, taskTools, tasks, prompt, steps } = kind;
    // Every request goes to another replica than the one before.
    let turn = 0;
    const trainer = (): Trainer => trainers[turn++ % trainers.length] as Trainer;
    const get = async (path: string, sid?: string): Promise<unknown> => {
      const { status, body } = await trainer().ask('GET', path, sid === undefined ? {} : { sid });
      return status === 200 ? body : { status, body };
    };
    const post = async (path: string, body?: unknown, sid?: string): Promise<unknown> => {
      const given = { ...(body !== undefined && { body }), ...(sid !== undefined && { sid }) };
      const { status, body: answer } = await trainer().ask('POST', path, given);
      return status === 200 ? answer : { status, body: answer };
    };
    const names = (answer: unknown): string[] =>
      (answer as { tools: { name: string }[] }).tools.map((tool) => tool.name);

    expect(await get('/health')).toEqual({ status: 'ok' });
    expect(await get('/list_environments')).toEqual(['lab', 'notes', 'relayed']);
    const listed = await get(`/${name}/tools`);
    expect(names(listed).sort()).toEqual(tools);
    for (const tool of (listed as { tools: object[] }).tools) {
      expect(Object.keys(tool)).toEqual(['name', 'description', 'input_schema']);
    }
    expect(await get(`/${name}/splits`)).toEqual(splits);
    expect(await post(`/${name}/tasks`, { split: 'train' })).toMatchObject({ tasks, env_name: name });
    expect(await post(`/${name}/num_tasks`, { split: 'train' })).toEqual({ num_tasks: 3 });
    expect(await post(`/${name}/task`, { split: 'train', index: 1 })).toMatchObject({ task: tasks[1], env_name: name });
    expect(await post(`/${name}/task_range`, { split: 'train', start: -2 })).toMatchObject({
      tasks: tasks.slice(-2),
      env_name: name,
    });
    const { sid } = (await post('/create_session')) as { sid: string };
    const create = { env_name: name, split: 'train', index: 1 };
    expect(await post('/create', create, sid)).toEqual({ sid });
    expect(await post('/ping', undefined, sid)).toEqual({ status: 'ok' });
    expect(await post('/delete', undefined, sid)).toEqual({ sid });
    expect(await post('/delete_session', undefined, sid)).toEqual({ sid });

    expect(await post('/create', create, sid)).toEqual({ sid });
    expect(names(await get(`/${name}/task_tools`, sid)).sort()).toEqual(taskTools);
    const blocks = (await get(`/${name}/prompt`, sid)) as { text: string }[];
    expect(blocks).toEqual([{ text: expect.stringContaining(prompt), detail: null, type: 'text' }]);
    for (const [tool, input, result] of steps) {
      const called = await trainer().call(sid, tool, input, { environment: name });
      expect(called.frames[0]?.event).toBe('task_id');
      expect(called.result).toMatchObject(result);
      const { taskId = '' } = called;
      expect(await trainer().call(sid, tool, input, { environment: name, taskId })).toMatchObject({
        taskId,
        result: called.result,
      });
    }
    const nope = await trainer().call(sid, 'nope', {}, { environment: name });
    expect(nope.result).toEqual({ ok: false, error: "'nope' is not a valid tool", reason: 'not_found' });
    expect(await post('/delete', undefined, sid)).toEqual({ sid });
    expect(await get(`/${name}/prompt`, sid)).toMatchObject({ status: 410 });
  });

  it.each(KINDS)('of the kind $kind says in the words of the protocol what is wrong', async ({ name }) => {
    const [trainer] = trainers as [Trainer];
    const ask = async (path: string, body: unknown): Promise<unknown> => {
      const { status, body: answer } = await trainer.ask('POST', path, { body });
      return [status, answer];
    };
    expect(await ask(`/${name}/tasks`, { split: 'no' })).toEqual([400, { detail: 'Invalid split' }]);
    expect(await ask(`/${name}/num_tasks`, { split: 'no' })).toEqual([400, { detail: 'Invalid split' }]);
    expect(await ask(`/${name}/task`, { split: 'train', index: 3 })).toEqual([400, { detail: 'Invalid index' }]);
    expect(await ask(`/${name}/task`, { split: 'train', index: -1 })).toEqual([400, { detail: 'Invalid index' }]);
    expect(await ask(`/${name}/task_range`, { split: 'train', start: 2, stop: 1 })).toEqual([
      200,
      { tasks: [], env_name: name },
    ]);
    const { sid } = (await trainer.ask('POST', '/create_session')).body as { sid: string };
    for (const index of [9, -1]) {
      const wrong = await trainer.ask('POST', '/create', { sid, body: { env_name: name, split: 'train', index } });
      expect(wrong).toMatchObject({ status: 400, body: { detail: 'Invalid index' } });
    }
  });
});
