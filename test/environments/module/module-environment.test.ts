import { defineEnvironment } from '../../../src/environments/module/define-environment.ts';
import { ModuleEnvironment } from '../../../src/environments/module/module-environment.ts';
import { defineTool, image } from '../../../src/index.ts';
import { call, FIRST, never, request, sums, textsOf, tool } from './sums.ts';

describe('the environment of a module', () => {
  it('plays an episode from the task to the reward', async () => {
    const environment = sums();
    expect(environment.name).toBe('sums');
    const episode = await environment.open(FIRST, never);
    expect(await episode.prompt(never)).toEqual([{ text: '1 + 2?', detail: null, type: 'text' }]);
    expect(await episode.call(call('submit', { sum: 3 }))).toEqual({
      ok: true,
      output: {
        blocks: [{ text: 'Thanks.', detail: null, type: 'text' }],
        metadata: null,
        reward: 1,
        finished: true,
      },
    });
    expect(await episode.call(call('submit', { sum: 4 }))).toMatchObject({ output: { reward: 0 } });
    await episode.close();
  });

  it('infers the types of task and state', async () => {
    const environment = new ModuleEnvironment(
      defineEnvironment({
        name: 'typed',
        splits: ['train'],
        tasks: { train: [{ word: 'abc' }] },
        setup: ({ task }) => ({ left: task.word.length }),
        tools: [
          { name: 'step', description: 'One less.', run: (_, { state }) => `${(--state.left).toFixed(1)}` },
          defineTool({ name: 'roll', description: 'Four.', run: () => 4 }),
        ],
        prompt: ({ task, state }) => `${task.word.toUpperCase()} ${state.left.toFixed(0)}`,
        teardown: ({ state }) => void state?.left.toFixed(0),
      }),
    );
    const episode = await environment.open(FIRST, never);
    expect(await episode.prompt(never)).toMatchObject([{ text: 'ABC 3' }]);
    expect(textsOf(await episode.call(call('step')))).toEqual(['2.0']);
    expect(textsOf(await episode.call(call('step')))).toEqual(['1.0']);
    const other = await environment.open(FIRST, never);
    expect(textsOf(await other.call(call('step')))).toEqual(['2.0']);
  });

  it('tells all functions of whom and what the episode is', async () => {
    const seen: Record<string, unknown>[] = [];
    const see = (name: string, answer: unknown) => (episode: Record<string, unknown>) => {
      seen.push({ from: name, ...episode });
      return answer;
    };
    const environment = sums({
      setup: see('setup', { s: 1 }),
      taskTools: see('taskTools', [tool('peek', (_, episode) => see('tool', 'ok')({ ...episode }))]),
      prompt: see('prompt', 'p'),
      teardown: see('teardown', undefined),
    });
    const signals = Array.from({ length: 3 }, () => new AbortController().signal) as [
      AbortSignal,
      AbortSignal,
      AbortSignal,
    ];
    const episode = await environment.open(request({ split: 'train', index: 0 }, { KEY: 'k' }), signals[0]);
    await episode.prompt(signals[1]);
    await episode.call(call('peek', {}, signals[2]));
    await episode.close();
    const facts = {
      sid: 'sid-1',
      principal: 'ada',
      task: { a: 1, b: 2 },
      split: 'train',
      index: 0,
      secrets: { KEY: 'k' },
    };
    expect(seen).toEqual([
      { from: 'setup', ...facts, signal: expect.anything() },
      { from: 'taskTools', ...facts, signal: expect.anything(), state: { s: 1 } },
      { from: 'prompt', ...facts, signal: expect.anything(), state: { s: 1 } },
      { from: 'tool', ...facts, signal: expect.anything(), state: { s: 1 } },
      { from: 'teardown', ...facts, state: { s: 1 } },
    ]);
    expect(seen.map(({ signal }) => signals.indexOf(signal as AbortSignal))).toEqual([0, 0, 1, 2, -1]);
  });

  it('gives every episode a task of its own', async () => {
    const environment = sums({ tools: [tool('spoil', (_, { task }) => `${++(task as { a: number }).a}`)] });
    for (const sid of ['one', 'two']) {
      const episode = await environment.open({ ...FIRST, sid }, never);
      expect(textsOf(await episode.call(call('spoil')))).toEqual(['2']);
    }
  });
});

describe('the prompt of an environment', () => {
  it('may be made of text and images', async () => {
    const episode = await sums({ prompt: async () => ['Look:', image('AAEC', 'image/png')] }).open(FIRST, never);
    expect(await episode.prompt(never)).toEqual([
      { text: 'Look:', detail: null, type: 'text' },
      { data: 'AAEC', mimeType: 'image/png', detail: null, type: 'image' },
    ]);
  });

  it('is refused in one sentence if it is none', async () => {
    const episode = await sums({ prompt: () => 7 }).open(FIRST, never);
    await expect(episode.prompt(never)).rejects.toThrow(
      'The prompt cannot be used: prompt must be text or a block, not a number.',
    );
  });
});

describe('the life of an episode', () => {
  const story = (other: Record<string, unknown>) => {
    const events: string[] = [];
    const environment = sums({
      setup: () => void events.push('setup'),
      teardown: () => void events.push('teardown'),
      ...other,
    });
    return { events, environment };
  };

  it('ends with one teardown, however often it is closed', async () => {
    const { events, environment } = story({});
    const episode = await environment.open(FIRST, never);
    await Promise.all([episode.close(), episode.close()]);
    await episode.close();
    expect(events).toEqual(['setup', 'teardown']);
  });

  it('ends with a teardown when its setup fails, and with the error of the setup', async () => {
    const thrown = new Error('no room');
    const states: unknown[] = [];
    const { environment } = story({
      setup: () => Promise.reject(thrown),
      teardown: ({ state }: { state: unknown }) => {
        states.push(state);
        throw new Error('teardown fails as well');
      },
    });
    await expect(environment.open(FIRST, never)).rejects.toBe(thrown);
    expect(states).toEqual([undefined]);
  });

  it('ends with a teardown when it is given up during its setup, even if the setup does not notice', async () => {
    const stop = new AbortController();
    const { events, environment } = story({
      setup: async () => {
        stop.abort(new Error('deleted'));
        await Promise.resolve();
        events.push('setup is through');
        return { made: 'something' };
      },
      taskTools: () => {
        events.push('taskTools');
        return [];
      },
      teardown: ({ state }: { state: { made: string } }) => events.push(`teardown of ${state.made}`),
    });
    await expect(environment.open(FIRST, stop.signal)).rejects.toThrow('deleted');
    expect(events).toEqual(['setup is through', 'teardown of something']);
  });

  it('ends with a teardown when it is given up while the tools of its task are made', async () => {
    const stop = new AbortController();
    const { events, environment } = story({
      taskTools: () => {
        stop.abort(new Error('deleted'));
        return [];
      },
    });
    await expect(environment.open(FIRST, stop.signal)).rejects.toThrow('deleted');
    expect(events).toEqual(['setup', 'teardown']);
  });

  it('does not begin behind an aborted signal, or without a task', async () => {
    const { events, environment } = story({});
    await expect(environment.open(FIRST, AbortSignal.abort(new Error('deleted')))).rejects.toThrow('deleted');
    await expect(environment.open(request({ split: 'train', index: 9 }), never)).rejects.toThrow('Invalid index');
    await expect(environment.open(request({ split: 'nope', index: 0 }), never)).rejects.toThrow('Invalid split');
    expect(events).toEqual([]);
  });

  it('tells the log of a teardown that nobody else hears of', async () => {
    const warnings: string[] = [];
    const definition = defineEnvironment({
      ...{ name: 'e', splits: ['train'], tasks: { train: [{}] }, tools: [], taskTools: () => [], prompt: () => '' },
      setup: () => {
        throw new Error('no room');
      },
      teardown: () => {
        throw new Error('no broom');
      },
    });
    const environment = new ModuleEnvironment(definition, { warn: (message) => warnings.push(message) });
    await expect(environment.open(FIRST, never)).rejects.toThrow('no room');
    expect(warnings).toEqual(['The teardown of e failed after its setup had: no broom']);
  });
});

describe('a task that a client gives', () => {
  const taskSchema = {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' } },
    required: ['a', 'b'],
  };
  const checkTask = ({ a }: { a: number }) => (a > 100 ? 'a is too large.' : undefined);

  it('is played like one of the environment, without split and index', async () => {
    const seen: unknown[] = [];
    const environment = sums({
      taskSchema,
      checkTask,
      setup: (episode: object) => void seen.push(Object.keys(episode)),
    });
    const choice = { task: { a: 20, b: 22 } };
    await environment.check(choice);
    const episode = await environment.open(request(choice), never);
    expect(await episode.prompt(never)).toMatchObject([{ text: '20 + 22?' }]);
    expect(seen).toEqual([['sid', 'principal', 'task', 'secrets', 'signal']]);
  });

  it('is refused by the schema and by the check, before any setup', async () => {
    const begun: string[] = [];
    const environment = sums({ taskSchema, checkTask, setup: () => void begun.push('setup') });
    for (const [task, message] of [
      [{ a: 'x', b: 1 }, 'The task cannot be used: a must be integer.'],
      [{}, 'The task cannot be used: a is missing; b is missing.'],
      [{ a: 101, b: 1 }, 'The task cannot be used: a is too large.'],
    ] as const) {
      await expect(environment.check({ task })).rejects.toMatchObject({ code: 'invalid_task', message });
      await expect(environment.open(request({ task }), never)).rejects.toMatchObject({ code: 'invalid_task', message });
    }
    expect(begun).toEqual([]);
  });
});
