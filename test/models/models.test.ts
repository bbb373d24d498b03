import { wholeAnswer } from '../../src/models/answer.ts';
import { ChatBackend } from '../../src/models/chat-backend.ts';
import { DemoModel } from '../../src/models/demo-model.ts';
import type { ModelBackend, ModelEvent } from '../../src/models/model.ts';
import { ModelError, type ModelErrorCode } from '../../src/models/model-error.ts';
import { Models, type ModelsOptions } from '../../src/models/models.ts';
import { eventually } from '../streams/logs.ts';
import { delta, frame, type Script, ScriptedBackend, saying } from '../support/model-backend.ts';
import { ask, collect } from './collect.ts';

const open: Models[] = [];
const modelsOf = (options: ModelsOptions): Models => {
  const models = new Models(options);
  open.push(models);
  return models;
};
const chat = (url: string): ChatBackend =>
  new ChatBackend({ baseUrl: url, retry: { retries: 0 }, idleMs: 500, listMs: 100 });

afterEach(() => {
  for (const models of open.splice(0)) models.close();
});

/** A backend that is never asked. */
const nobody: ModelBackend = {
  stream: () => {
    throw new Error('nobody asked');
  },
  models: () => Promise.resolve([]),
  close: () => {},
};

const observed = () => {
  const seen: unknown[] = [];
  return {
    seen,
    observe: {
      firstEvent: (backend: string) => seen.push(['first', backend]),
      ended: (backend: string, outcome: string, _: number, usage: unknown) =>
        seen.push(['ended', backend, outcome, usage]),
      fellBack: (from: string, to: string, code: string) => seen.push(['fell back', from, to, code]),
    },
  };
};

describe('the backend of a model', () => {
  const models = new Models({
    backends: [
      { name: 'any', backend: nobody },
      { name: 'gpt', backend: nobody, models: ['gpt-*', 'o*-mini'] },
      { name: 'local', backend: nobody, models: ['gpt-oss', '*/llama*:free', 'a.b'] },
    ],
  });

  it.each([
    ['gpt-4', 'gpt'],
    ['o4-mini', 'gpt'],
    ['omini', 'any'],
    ['o-mini', 'gpt'],
    ['gpt-oss', 'local'], // an exact name before a pattern, wherever it stands
    ['x/llama-3:free', 'local'],
    ['x/llama:paid', 'any'],
    ['axb', 'any'],
    ['', 'any'],
    ['unheard', 'any'],
  ])('%s is %s', (model, backend) => {
    expect(models.backendOf(model)).toBe(backend);
  });

  it('is the default one that is named, or none', async () => {
    const backends = [
      { name: 'a', backend: nobody, models: ['a*'] },
      { name: 'b', backend: nobody, models: ['b*'] },
    ];
    expect(new Models({ backends, defaultBackend: 'b' }).backendOf('x')).toBe('b');
    const without = new Models({ backends });
    expect(without.backendOf('x')).toBeUndefined();
    const { error } = await collect(without.stream({ ...ask('hello'), model: 'x' }));
    expect(error).toMatchObject({ code: 'not_found', message: 'No backend serves the model x.' });
  });

  it('is quickly found not to be, even by hostile names and patterns', () => {
    const hostile = new Models({ backends: [{ name: 'a', backend: nobody, models: [`${'a*'.repeat(100)}b`] }] });
    const begun = performance.now();
    expect(hostile.backendOf('a'.repeat(256))).toBeUndefined();
    expect(performance.now() - begun).toBeLessThan(50);
  });

  it('has a configuration that is checked', () => {
    expect(
      () =>
        new Models({
          backends: [
            { name: 'a', backend: nobody },
            { name: 'a', backend: nobody },
          ],
        }),
    ).toThrow('one name');
    expect(() => new Models({ backends: [{ name: 'a', backend: nobody }], defaultBackend: 'b' })).toThrow('b');
    expect(() => new Models({ backends: [{ name: 'a', backend: nobody, models: [''] }] })).toThrow('pattern');
  });

  it('is the demo model for every name when there is no other', async () => {
    const alone = new Models({ demo: new DemoModel({ wordMs: 0 }) });
    const answer = await wholeAnswer(alone.stream({ ...ask('hello'), model: 'gpt-4' }));
    expect(answer).toMatchObject({ model: 'sluice-demo', finish: 'stop' });
    expect(await alone.list()).toEqual([{ id: 'sluice-demo', ownedBy: 'sluice', backend: 'demo' }]);
  });
});

describe('a fallback', () => {
  const answering = (...scripts: Script[]) => ScriptedBackend.start(...scripts);
  const good = saying('hi').replaceAll('m-1', 'm-2');

  const failures: [string, Script][] = [
    ['rate limits', (reply) => reply.json(429, {}, { 'retry-after': '3600' })],
    ['overload', (reply) => reply.json(503, {})],
    ['a model it does not have', (reply) => reply.json(404, {})],
    ['a lost connection', (reply) => reply.cut()],
    ['silence', () => {}],
    [
      'an error in place of the first event',
      (reply) => reply.stream(delta({ role: 'assistant', content: '' }) + frame({ error: 'busy' })),
    ],
  ];

  it.each(failures)('is asked after %s', async (_, script) => {
    const [first, second] = [await answering(script), await answering((reply) => reply.stream(good))];
    const { seen, observe } = observed();
    const models = modelsOf({
      backends: [
        { name: 'one', backend: chat(first.url), models: ['asked'] },
        { name: 'two', backend: chat(second.url) },
      ],
      observe,
    });
    const { events, error } = await collect(models.stream(ask('hello'), { fallbacks: ['other'] }));
    expect(error).toBeUndefined();
    expect(events[0]).toMatchObject({ type: 'start', model: 'm-2' });
    expect(events.filter(({ type }) => type === 'start')).toHaveLength(1);
    expect(second.requests[0]?.body.model).toBe('other');
    expect(seen).toEqual([
      ['ended', 'one', expect.any(String), undefined],
      ['fell back', 'asked', 'other', expect.any(String)],
      ['first', 'two'],
      ['ended', 'two', 'stop', undefined],
    ]);
  });

  it.each<[number, ModelErrorCode]>([
    [400, 'invalid_request'],
    [401, 'auth'],
  ])('is not asked after %d', async (status, code) => {
    const [first, second] = [
      await answering((reply) => reply.json(status, {})),
      await answering((reply) => reply.stream(good)),
    ];
    const models = modelsOf({
      backends: [
        { name: 'one', backend: chat(first.url), models: ['asked'] },
        { name: 'two', backend: chat(second.url) },
      ],
    });
    expect(await collect(models.stream(ask('hello'), { fallbacks: ['other'] }))).toMatchObject({
      events: [],
      error: { code },
    });
    expect(second.accepted).toBe(0);
  });

  it('is never asked once an event is out', async () => {
    const [first, second] = [
      await answering((reply) => {
        reply.head();
        reply.chunk(delta({ content: 'half of' }));
        setTimeout(() => reply.cut(), 20);
      }),
      await answering((reply) => reply.stream(good)),
    ];
    const models = modelsOf({
      backends: [
        { name: 'one', backend: chat(first.url), models: ['asked'] },
        { name: 'two', backend: chat(second.url) },
      ],
    });
    const { events, error } = await collect(models.stream(ask('hello'), { fallbacks: ['other'] }));
    expect(events.at(-1)).toEqual({ type: 'text', delta: 'half of' });
    expect(error).toMatchObject({ code: 'unavailable' });
    expect(second.accepted).toBe(0);
  });

  it('is not asked after a cancel', async () => {
    const [first, second] = [await answering(() => {}), await answering((reply) => reply.stream(good))];
    const models = modelsOf({
      backends: [
        { name: 'one', backend: chat(first.url), models: ['asked'] },
        { name: 'two', backend: chat(second.url) },
      ],
    });
    const stop = new AbortController();
    const done = collect(models.stream(ask('hello'), { fallbacks: ['other'], signal: stop.signal }));
    await eventually(() => first.requests.length === 1);
    stop.abort();
    expect((await done).error).toMatchObject({ code: 'cancelled' });
    expect(second.accepted).toBe(0);
  });

  it('is each asked once, in order; when none answers, the first failure is told', async () => {
    const server = await answering((reply) => reply.json(reply.request.body.model === 'asked' ? 503 : 404, {}));
    const models = modelsOf({ backends: [{ name: 'one', backend: chat(server.url) }] });
    const { error } = await collect(models.stream(ask('hello'), { fallbacks: ['a', 'asked', 'b', 'a'] }));
    expect(server.requests.map(({ body }) => body.model)).toEqual(['asked', 'a', 'b']);
    expect(error).toMatchObject({ code: 'unavailable', status: 503 });
  });

  it('that nobody serves is passed over', async () => {
    const server = await answering((reply) => reply.stream(good));
    const models = modelsOf({ backends: [{ name: 'one', backend: chat(server.url), models: ['c'] }] });
    expect(await wholeAnswer(models.stream(ask('hello'), { fallbacks: ['b', 'c'] }))).toMatchObject({ text: 'hi' });
  });
});

describe('what is known of the backends', () => {
  it('is what they answered last', async () => {
    let now = 1_000;
    const server = await ScriptedBackend.start((reply) => reply.json(503, {}));
    const models = modelsOf({ backends: [{ name: 'one', backend: chat(server.url) }], now: () => now });
    expect(models.health()).toEqual([{ backend: 'one', state: 'unknown' }]);
    await collect(models.stream(ask('hello')));
    const lastError = { code: 'unavailable', message: "The model's backend answered 503.", at: 1_000 };
    expect(models.health()).toEqual([{ backend: 'one', state: 'failing', lastError }]);
    now = 2_000;
    server.scripts = [(reply) => reply.stream(saying('hi'))];
    await collect(models.stream(ask('hello')));
    expect(models.health()).toEqual([{ backend: 'one', state: 'ok', lastOkAt: 2_000, lastError }]);
    server.scripts = [(reply) => reply.json(400, {})];
    await collect(models.stream(ask('hello')));
    expect(models.health()).toMatchObject([{ state: 'ok', lastError }]);
  });

  it('is counted: tokens, ends, and readers that left', async () => {
    const { seen, observe } = observed();
    const models = modelsOf({ demo: new DemoModel({ wordMs: 0 }), observe });
    await collect(models.stream(ask('say exactly: hi')));
    await collect(models.stream(ask('fail with 500 after 1 word')));
    for await (const _ of models.stream(ask('hello'))) break;
    expect(seen).toEqual([
      ['first', 'demo'],
      ['ended', 'demo', 'stop', { input: 3, output: 1, total: 4 }],
      ['first', 'demo'],
      ['ended', 'demo', 'unavailable', undefined],
      ['first', 'demo'],
      ['ended', 'demo', 'cancelled', undefined],
    ]);
  });

  it('does not depend on who counts: a backend that throws something else is a failure like any other', async () => {
    const broken: ModelBackend = {
      ...nobody,
      stream: async function* (): AsyncGenerator<ModelEvent> {
        yield { type: 'text', delta: 'x' };
        throw new TypeError('secret detail');
      },
    };
    const { error } = await collect(modelsOf({ backends: [{ name: 'one', backend: broken }] }).stream(ask('hello')));
    expect(error).toBeInstanceOf(ModelError);
    expect(error).toMatchObject({ code: 'bad_answer', message: expect.not.stringContaining('secret') });
  });
});

describe('the list of models', () => {
  it('is that of all who answer, each model with the backend that serves it', async () => {
    const one = await ScriptedBackend.start((reply) =>
      reply.json(200, { data: [{ id: 'a' }, { id: 'shared' }, { id: 'gpt-9' }] }),
    );
    const two = await ScriptedBackend.start((reply) =>
      reply.json(200, { data: [{ id: 'gpt-1' }, { id: 'shared' }, { id: 'b' }] }),
    );
    const broken = await ScriptedBackend.start((reply) => reply.json(500, {}));
    const mute = await ScriptedBackend.start(() => {});
    const models = modelsOf({
      backends: [
        { name: 'one', backend: chat(one.url) },
        { name: 'two', backend: chat(two.url), models: ['gpt-*', 'named'] },
        { name: 'broken', backend: chat(broken.url), models: ['x-*', 'x'] },
        { name: 'mute', backend: chat(mute.url), models: ['y-*'] },
      ],
    });
    expect(await models.list()).toEqual([
      { id: 'a', backend: 'one' },
      { id: 'shared', backend: 'one' },
      { id: 'gpt-1', backend: 'two' },
      { id: 'named', backend: 'two' },
      { id: 'x', backend: 'broken' },
    ]);
    expect(models.health().map(({ state }) => state)).toEqual(['ok', 'ok', 'failing', 'failing']);
  });

  it('is kept for a short while, and asked for once by many', async () => {
    let now = 0;
    const server = await ScriptedBackend.start((reply) => reply.json(200, { data: [{ id: 'a' }] }));
    const models = modelsOf({
      backends: [{ name: 'one', backend: chat(server.url) }],
      now: () => now,
      listForMs: 1_000,
    });
    await Promise.all([models.list(), models.list()]);
    now = 999;
    await models.list();
    expect(server.requests).toHaveLength(1);
    now = 1_000;
    await models.list();
    expect(server.requests).toHaveLength(2);
  });
});
