import { wholeAnswer } from '../../src/models/answer.ts';
import { DEMO_MODEL, DemoModel } from '../../src/models/demo-model.ts';
import type { ModelMessage, ModelRequest, ToolSpec } from '../../src/models/model.ts';
import { collect } from './collect.ts';

const TOOLS: ToolSpec[] = [
  { name: 'echo', parameters: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] } },
  {
    name: 'add',
    parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'integer' } }, required: ['a', 'b'] },
  },
  { name: 'time.now' },
];

const demo = new DemoModel({ wordMs: 0 });
const asking = (text: string, fields: Partial<ModelRequest> = {}): ModelRequest => ({
  model: 'whatever',
  messages: [{ role: 'user', content: text }],
  tools: TOOLS,
  ...fields,
});
const answer = (text: string, fields: Partial<ModelRequest> = {}) => wholeAnswer(demo.stream(asking(text, fields)));
const callsFor = async (text: string, fields: Partial<ModelRequest> = {}): Promise<[string, unknown][]> => {
  const { toolCalls, finish } = await answer(text, fields);
  expect(finish).toBe(toolCalls.length > 0 ? 'tool_calls' : 'stop');
  return toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]);
};

/** The conversation after the model's calls were answered with their own names and numbers. */
const afterCalls = async (request: ModelRequest, results: readonly string[]): Promise<ModelRequest> => {
  const { toolCalls } = await wholeAnswer(demo.stream(request));
  expect(toolCalls).toHaveLength(results.length);
  const messages: ModelMessage[] = [
    ...request.messages,
    {
      role: 'assistant',
      content: null,
      tool_calls: toolCalls.map(({ id, name, arguments: args }) => ({
        id,
        type: 'function',
        function: { name, arguments: args },
      })),
    },
    ...toolCalls.map(({ id }, i): ModelMessage => ({ role: 'tool', tool_call_id: id, content: results[i] ?? '' })),
  ];
  return { ...request, messages };
};

describe('the demo model', () => {
  it('says that it is a demo and what it was asked, under its own name', async () => {
    const { events } = await collect(demo.stream(asking('What is a sluice?')));
    expect(events[0]).toMatchObject({ type: 'start', model: 'sluice-demo', created: expect.any(Number) });
    expect(events.at(-1)).toEqual({ type: 'finish', reason: 'stop', model: 'sluice-demo' });
    const { text } = await answer('What is a sluice?');
    expect(text).toBe('I am sluice-demo, a built-in model for trying things out. You asked: "What is a sluice?"');
  });

  it('gives the same answer to the same question, but for ids and the time', async () => {
    const options = { wordMs: 0, newId: () => 'id', now: () => 7_000 };
    const ask = () => collect(new DemoModel(options).stream(asking('think first, use echo and add with {"a":1}')));
    expect(await ask()).toEqual(await ask());
  });

  it('speaks word by word, each with its space, at the pace it is set to', async () => {
    const waits: number[] = [];
    const paced = new DemoModel({ wordMs: 30, sleep: async (ms) => void waits.push(ms) });
    const { events } = await collect(paced.stream(asking('say exactly: one  two\nthree')));
    expect(events.slice(1, -2)).toEqual(['one  ', 'two\n', 'three'].map((delta) => ({ type: 'text', delta })));
    expect(waits).toEqual([30, 30, 30]);
  });

  it('takes its time by the clock, and stops at once when it is cancelled', async () => {
    const stop = new AbortController();
    const events = new DemoModel({ wordMs: 5_000 }).stream(asking('hello'), { signal: stop.signal });
    await events.next();
    const next = events.next();
    const begun = performance.now();
    setTimeout(() => stop.abort(), 10);
    await expect(next).rejects.toMatchObject({ code: 'cancelled' });
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  it('lets others have their turn even at full speed, and can be cancelled then', async () => {
    const stop = new AbortController();
    setImmediate(() => stop.abort());
    const { events, error } = await collect(demo.stream(asking('long answer 100000'), { signal: stop.signal }));
    expect(error).toMatchObject({ code: 'cancelled' });
    expect(events.length).toBeLessThan(2_000);
  });

  it('counts words as tokens', async () => {
    const request = asking('say exactly: three words here', {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'say exactly: three words here' },
      ],
    });
    expect((await wholeAnswer(demo.stream(request))).usage).toEqual({ input: 7, output: 3, total: 10 });
    const thought = (await answer('think first, say exactly: one')).usage;
    expect(thought).toMatchObject({ output: (thought?.reasoning ?? 0) + 1, reasoning: expect.any(Number) });
  });

  it('sees images', async () => {
    const content = [
      { type: 'text', text: 'Look.' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
    ] as const;
    expect((await wholeAnswer(demo.stream({ model: 'm', messages: [{ role: 'user', content }] }))).text).toContain(
      'You also sent an image.',
    );
  });

  it('lists itself', async () => {
    expect(await demo.models()).toEqual([{ id: DEMO_MODEL, ownedBy: 'sluice' }]);
  });

  describe('reasons', () => {
    it.each([['think first: why?'], ['Think step by step please']])('when it is told to: %s', async (text) => {
      const { events } = await collect(demo.stream(asking(text)));
      expect(events[1]?.type).toBe('reasoning');
      expect((await answer(text)).reasoning).toMatch(/I can answer now\.$/);
    });

    it('when an effort is set, more with more of it', async () => {
      const low = (await answer('why?', { reasoningEffort: 'low' })).reasoning;
      const high = (await answer('why?', { reasoningEffort: 'high' })).reasoning;
      expect(low).toBe('I can answer now.');
      expect(high.length).toBeGreaterThan(low.length);
      expect((await answer('why?', { reasoningEffort: 'none' })).reasoning).toBe('');
    });

    it('not because somebody thinks', async () => {
      expect((await answer('What do you think of thinking?')).reasoning).toBe('');
    });
  });

  describe('calls', () => {
    it.each<[string, [string, unknown][]]>([
      ['use echo with {"message":"hi"}', [['echo', { message: 'hi' }]]],
      ['Please call the tool `echo` with {"message": "a {b} \\" c"}.', [['echo', { message: 'a {b} " c' }]]],
      ['Use the echo tool: {"message":"use add"} thanks', [['echo', { message: 'use add' }]]],
      ['use ECHO {"message":"x"}', [['echo', { message: 'x' }]]],
      ['use time.now.', [['time.now', {}]]],
      ['use add with 2 and 3', [['add', { a: 2, b: 3 }]]],
      ['use add on -1.5 and 2.7', [['add', { a: -1.5, b: 2 }]]],
      ['use add', [['add', { a: 1, b: 1 }]]],
      ['use echo on "good day"', [['echo', { message: 'good day' }]]],
      ['use echo', [['echo', { message: 'demo message' }]]],
      [
        'use echo with {"message":"a"} and add with {"a":1,"b":2}',
        [
          ['echo', { message: 'a' }],
          ['add', { a: 1, b: 2 }],
        ],
      ],
      [
        'use echo, add and time.now',
        [
          ['echo', { message: 'demo message' }],
          ['add', { a: 1, b: 1 }],
          ['time.now', {}],
        ],
      ],
      [
        'use echo, and use add with 4 5',
        [
          ['echo', { message: 'demo message' }],
          ['add', { a: 4, b: 5 }],
        ],
      ],
      [
        'use add with 1 2. Also use add with 3 4.',
        [
          ['add', { a: 1, b: 2 }],
          ['add', { a: 3, b: 4 }],
        ],
      ],
    ])('%s', async (text, calls) => {
      expect(await callsFor(text)).toEqual(calls);
    });

    it.each([
      ['I would like to use words'],
      ['use echoes'],
      ['use echo-2'],
      ['use echo.two'],
      ['reuse echo'],
      ['What does add do?'],
      ['echo'],
    ])('nothing for: %s', async (text) => {
      expect(await callsFor(text)).toEqual([]);
    });

    it('only what it has been given', async () => {
      expect(await callsFor('use echo with {"message":"hi"} and add', { tools: TOOLS.slice(1) })).toEqual([]);
      expect(await callsFor('use echo', { tools: [] })).toEqual([]);
      expect(await callsFor('use add and echo', { tools: TOOLS.slice(1) })).toEqual([['add', { a: 1, b: 1 }]]);
    });

    it('the tool whose name fits best', async () => {
      const tools = [{ name: 'get' }, { name: 'get-sum' }, { name: 'get-sum.all' }];
      for (const { name } of tools) expect(await callsFor(`use ${name}, please`, { tools })).toEqual([[name, {}]]);
    });

    it('with fragments that are the arguments, and one end for each call', async () => {
      const { events } = await collect(
        demo.stream(asking('use echo with {"message":"a rather long message"} and add')),
      );
      for (const index of [0, 1]) {
        const deltas = events.flatMap((e) => (e.type === 'tool_arguments' && e.index === index ? [e.delta] : []));
        const ends = events.filter((e) => e.type === 'tool_call_end' && e.index === index);
        expect(ends).toEqual([expect.objectContaining({ arguments: deltas.join('') })]);
      }
      expect(new Set(events.flatMap((e) => (e.type === 'tool_call' ? [e.id] : []))).size).toBe(2);
    });

    it('with arguments that are no JSON', async () => {
      for (const text of ['use echo with bad arguments', 'use echo with {not json}']) {
        const { toolCalls } = await answer(text);
        expect(toolCalls).toHaveLength(1);
        expect(() => JSON.parse(toolCalls[0]!.arguments)).toThrow();
      }
    });

    it('with arguments that the schema does not take', async () => {
      expect(await callsFor('use add with wrong arguments')).toEqual([
        ['add', { a: { wrong: true }, b: { wrong: true } }],
      ]);
      expect(await callsFor('use time.now with wrong arguments')).toEqual([['time.now', ['wrong']]]);
    });

    it('none when it must not, and one when it must', async () => {
      expect(await callsFor('use echo', { toolChoice: 'none' })).toEqual([]);
      expect(await callsFor('hello', { toolChoice: 'required' })).toEqual([['echo', { message: 'demo message' }]]);
      expect(await callsFor('hello 7 8', { toolChoice: { name: 'add' } })).toEqual([['add', { a: 7, b: 8 }]]);
      expect(await callsFor('use echo', { toolChoice: { name: 'add' } })).toEqual([['add', { a: 1, b: 1 }]]);
    });

    it('and then quotes every result', async () => {
      const request = await afterCalls(asking('use echo and add'), ['hi', '3']);
      expect(await wholeAnswer(demo.stream(request))).toMatchObject({
        text: 'echo answered: hi\nadd answered: 3',
        finish: 'stop',
      });
      const required = { ...request, toolChoice: 'required' as const };
      expect((await wholeAnswer(demo.stream(required))).toolCalls).toEqual([]);
    });

    it('in one step after the other', async () => {
      const second = await afterCalls(asking('use echo with {"message":"a"}, then use add with 1 2'), ['a']);
      const third = await afterCalls(second, ['3']);
      expect(await wholeAnswer(demo.stream(third))).toMatchObject({
        text: 'echo answered: a\nadd answered: 3',
        toolCalls: [],
      });
    });

    it('one at a time if several are not wanted', async () => {
      const second = await afterCalls(asking('use echo and add', { parallelToolCalls: false }), ['a']);
      const third = await afterCalls(second, ['3']);
      expect((await wholeAnswer(demo.stream(third))).toolCalls).toEqual([]);
    });

    it('without an end when it is told to keep using a tool', async () => {
      let request = asking('keep using add with 1 2');
      for (let i = 0; i < 5; i++) request = await afterCalls(request, [String(i)]);
    });

    it('again when it is asked again', async () => {
      const first = await afterCalls(asking('use echo'), ['a']);
      const again: ModelRequest = {
        ...first,
        messages: [...first.messages, { role: 'assistant', content: 'ok' }, { role: 'user', content: 'use add' }],
      };
      expect((await wholeAnswer(demo.stream(again))).toolCalls).toMatchObject([{ name: 'add' }]);
    });

    it('says in its reasoning which', async () => {
      expect((await answer('think first, use add')).reasoning).toMatch(/I will call add\.$/);
    });
  });

  describe('answers on demand', () => {
    it('at any length', async () => {
      const { text, usage } = await answer('a long answer of 250 words');
      expect(text.split(' ')).toHaveLength(250);
      expect(usage?.output).toBe(250);
    });

    it('with exactly what it is told', async () => {
      expect((await answer('say exactly: fail with 500, use echo')).text).toBe('fail with 500, use echo');
    });

    it('with a refusal', async () => {
      expect(await answer('refuse this request')).toMatchObject({
        refusal: 'I will not answer that.',
        text: '',
        finish: 'stop',
      });
    });

    it.each([
      ['stop at length after 3 words', 'length', 3],
      ['stop at filter after 2 words', 'content_filter', 2],
      ['stop at length', 'length', 5],
    ])('%s', async (text, finish, words) => {
      const all = await answer(text);
      expect([all.finish, all.text.trim().split(' ').length]).toEqual([finish, words]);
    });

    it('within as many tokens as it may, and up to a stop word', async () => {
      expect(await answer('say exactly: a b c d', { maxTokens: 2 })).toMatchObject({ text: 'a b ', finish: 'length' });
      expect(await answer('say exactly: a b c d', { stop: ['x', 'c'] })).toMatchObject({
        text: 'a b ',
        finish: 'stop',
      });
      expect(await answer('say exactly: a b', { maxTokens: 2 })).toMatchObject({ text: 'a b', finish: 'stop' });
    });

    it('in JSON', async () => {
      const plain = await answer('hello', { responseFormat: { type: 'json_object' } });
      expect(JSON.parse(plain.text)).toEqual({ answer: expect.stringContaining('hello') });
      const schema = {
        type: 'object',
        properties: { n: { type: 'integer' }, mood: { enum: ['fine', 'bad'] } },
        required: ['n', 'mood'],
      };
      const format = { type: 'json_schema', json_schema: { name: 'x', schema } } as const;
      expect(JSON.parse((await answer('number 12', { responseFormat: format })).text)).toEqual({ n: 12, mood: 'fine' });
    });

    it('after a wait', async () => {
      const waits: number[] = [];
      const paced = new DemoModel({ wordMs: 0, sleep: async (ms) => void waits.push(ms) });
      await collect(paced.stream(asking('wait 2.5 seconds')));
      await collect(paced.stream(asking('wait 9999 seconds')));
      expect(waits).toEqual([2_500, 600_000]);
    });
  });

  describe('fails on demand', () => {
    it.each<[string, object]>([
      ['fail with 500', { code: 'unavailable', status: 500, retryable: true }],
      ['fail with 429', { code: 'rate_limited', status: 429, retryAfterMs: 1_000 }],
      ['fail with 401', { code: 'auth', status: 401, retryable: false }],
      ['please fail with 404 now', { code: 'not_found', status: 404 }],
      ['fail with timeout', { code: 'timeout', retryable: true }],
      ['fail with context_length', { code: 'context_length' }],
      ['fail with bad_answer', { code: 'bad_answer' }],
    ])('before the first event: %s', async (text, error) => {
      expect(await collect(demo.stream(asking(text)))).toMatchObject({ events: [], error });
    });

    it('in the middle of its answer', async () => {
      const { events, error } = await collect(demo.stream(asking('fail with 503 after 3 words')));
      expect(events.map(({ type }) => type)).toEqual(['start', 'text', 'text', 'text']);
      expect(error).toMatchObject({ code: 'unavailable', status: 503 });
    });

    it('after the calls that it was asked for', async () => {
      const request = await afterCalls(asking('use echo and fail with 500'), ['hi']);
      expect((await collect(demo.stream(request))).error).toMatchObject({ status: 500 });
    });

    it.each([
      ['It did fail with grace'],
      ['fail with 200'],
      ['failed without 500'],
      ['why do errors like 500 happen?'],
    ])('not by accident: %s', async (text) => {
      expect((await answer(text)).finish).toBe('stop');
    });
  });
});
