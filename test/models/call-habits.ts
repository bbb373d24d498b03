import { DONE, delta, frame } from '../support/model-backend.ts';
import { call, closing, end, type Habit, HEAD, HELLO, hello, one, piece, text, tools } from './habit.ts';

/** How calls of tools are told. */
export const CALL_HABITS: readonly Habit[] = [
  // one tool call
  {
    name: 'a call in fragments',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '')) +
      tools(piece({ index: 0 }, undefined, '{"a":')) +
      tools(piece({ index: 0 }, undefined, '1}')) +
      closing(),
    events: one('c1', '{"a":', '1}'),
    finish: 'tool_calls',
  },
  {
    name: 'a call in one chunk (Ollama)',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', '{"x":1}')) + closing(),
    events: one('c1', '{"x":1}'),
    finish: 'tool_calls',
  },
  {
    name: 'id and name in every fragment',
    body: ['{"a"', ':1', '}'].map((args) => tools(piece({ index: 0, id: 'c1' }, 'add', args))).join('') + closing(),
    events: one('c1', '{"a"', ':1', '}'),
    finish: 'tool_calls',
  },
  {
    name: 'name in every fragment, neither id nor index',
    body: ['{"a"', ':1', '}'].map((args) => tools(piece({}, 'add', args))).join('') + closing(),
    events: one('own', '{"a"', ':1', '}'),
    finish: 'tool_calls',
  },
  {
    name: 'no id, or an empty one',
    body: tools(piece({ index: 0, id: '' }, 'add', '{"a"')) + tools(piece({ index: 0, id: '' }, '', ':1}')) + closing(),
    events: one('own', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'no index',
    body: tools(piece({ id: 'c1' }, 'add', '{"a"')) + tools(piece({}, undefined, ':1}')) + closing(),
    events: one('c1', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'arguments as an object',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', { a: 1 })) + closing(),
    events: one('c1', '{"a":1}'),
    finish: 'tool_calls',
  },
  ...[
    ['no arguments', undefined],
    ['empty arguments', ''],
    ['null as arguments', 'null'],
    ['an empty object', '{}'],
  ].map(([name, args]) => ({
    name: `${name}: an empty object`,
    body: tools(piece({ index: 0, id: 'c1' }, 'add', args)) + closing(),
    events: one('c1', '{}'),
    finish: 'tool_calls',
  })),
  {
    name: 'an empty object in the place of arguments that follow',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '{}')) +
      tools(piece({ index: 0 }, undefined, '{"a"')) +
      tools(piece({ index: 0 }, undefined, ':1}')) +
      closing(),
    events: one('c1', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'the whole call again at the end',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a"')) +
      tools(piece({ index: 0 }, undefined, ':1}')) +
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a":1}')) +
      closing(),
    events: one('c1', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'the whole message again at the end',
    body:
      hello +
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a":1}')) +
      frame({
        ...HEAD,
        choices: [
          {
            message: { content: 'Hello', tool_calls: [piece({ id: 'c1' }, 'add', '{"a":1}')] },
            finish_reason: 'tool_calls',
          },
        ],
      }) +
      DONE,
    events: [...HELLO, ...one('c1', '{"a":1}')],
    finish: 'tool_calls',
  },
  {
    name: 'objects inside of arguments, cut where they begin and end',
    body:
      ['{"a":', '{"b":', '{}', '}', ',"c":"}"', ',"d":"', '{', '"}']
        .map((args, i) => tools(piece({ index: 0, ...(i === 0 && { id: 'c1' }) }, i === 0 ? 'add' : undefined, args)))
        .join('') + closing(),
    events: one('c1', '{"a":', '{"b":', '{}', '}', ',"c":"}"', ',"d":"', '{', '"}'),
    finish: 'tool_calls',
  },
  {
    name: 'the name after the first arguments',
    body:
      tools(piece({ index: 0, id: 'c1' }, undefined, '{"a"')) + tools(piece({ index: 0 }, 'add', ':1}')) + closing(),
    events: one('c1', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'text before a call, which stays',
    body: hello + tools(piece({ index: 0, id: 'c1' }, 'add', '{}')) + closing(),
    events: [...HELLO, ...one('c1', '{}')],
    finish: 'tool_calls',
  },
  {
    name: 'a call that ends with "stop"',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', '{}')) + closing('stop'),
    events: one('c1', '{}'),
    finish: 'tool_calls',
  },
  {
    name: 'a call that is cut off by its length',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', '{"a"')) + closing('length'),
    events: one('c1', '{"a"'),
    finish: 'length',
  },
  { name: 'tool_calls as the reason, but none of them', body: hello + closing('tool_calls'), events: HELLO },
  {
    name: 'a function_call in fragments',
    body:
      delta({ function_call: { name: 'add', arguments: '' } }) +
      delta({ function_call: { arguments: '{"a":' } }) +
      delta({ function_call: { arguments: '1}' } }) +
      closing('function_call'),
    events: one('own', '{"a":', '1}'),
    finish: 'tool_calls',
  },
  {
    name: 'a call that is told in both ways',
    body:
      delta({
        tool_calls: [piece({ index: 0, id: 'c1' }, 'add', '{}')],
        function_call: { name: 'add', arguments: '{}' },
      }) + closing('tool_calls'),
    events: one('c1', '{}'),
    finish: 'tool_calls',
  },

  // several tool calls
  {
    name: 'two calls, one after the other',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a"')) +
      tools(piece({ index: 0 }, undefined, ':1}')) +
      tools(piece({ index: 1, id: 'c2' }, 'sub', '{}')) +
      closing(),
    events: [
      ...call(0, 'c1', 'add', '{"a"', ':1}'),
      ...call(1, 'c2', 'sub'),
      end(0, 'c1', 'add', '{"a":1}'),
      { type: 'tool_arguments', index: 1, delta: '{}' },
      end(1, 'c2', 'sub', '{}'),
    ],
    finish: 'tool_calls',
  },
  {
    name: 'two calls, interleaved',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a"'), piece({ index: 1, id: 'c2' }, 'sub', '{"b"')) +
      tools(piece({ index: 1 }, undefined, ':2}'), piece({ index: 0 }, undefined, ':1}')) +
      closing(),
    events: [
      ...call(0, 'c1', 'add', '{"a"'),
      ...call(1, 'c2', 'sub', '{"b"'),
      { type: 'tool_arguments', index: 1, delta: ':2}' },
      { type: 'tool_arguments', index: 0, delta: ':1}' },
      end(0, 'c1', 'add', '{"a":1}'),
      end(1, 'c2', 'sub', '{"b":2}'),
    ],
    finish: 'tool_calls',
  },
  {
    name: 'two calls whose indexes begin at 1 and leave one out',
    body:
      tools(piece({ index: 1, id: 'c1' }, 'add', '{"a":1}')) +
      tools(piece({ index: 3, id: 'c2' }, 'sub', '{"b":2}')) +
      closing(),
    events: [
      ...call(0, 'c1', 'add', '{"a":1}'),
      ...call(1, 'c2', 'sub', '{"b":2}'),
      end(0, 'c1', 'add', '{"a":1}'),
      end(1, 'c2', 'sub', '{"b":2}'),
    ],
    finish: 'tool_calls',
  },
  ...[
    ['two whole calls, both with the index 0', { index: 0 }],
    ['two whole calls without an index', {}],
  ].map(([name, key]) => ({
    name: String(name),
    body:
      tools(piece({ ...Object(key), id: 'c1' }, 'add', '{"a":1}')) +
      tools(piece({ ...Object(key), id: 'c2' }, 'add', '{"a":1}')) +
      closing(),
    events: [
      ...call(0, 'c1', 'add', '{"a":1}'),
      ...call(1, 'c2', 'add', '{"a":1}'),
      end(0, 'c1', 'add', '{"a":1}'),
      end(1, 'c2', 'add', '{"a":1}'),
    ],
    finish: 'tool_calls',
  })),
  {
    name: 'two whole calls in one chunk, both with the index 0 and without an id',
    body: tools(piece({ index: 0 }, 'add', '{"a":1}'), piece({ index: 0 }, 'add', '{"a":1}')) + closing(),
    events: [
      ...call(0, 'own', 'add', '{"a":1}'),
      ...call(1, 'own', 'add', '{"a":1}'),
      end(0, 'own', 'add', '{"a":1}'),
      end(1, 'own', 'add', '{"a":1}'),
    ],
    finish: 'tool_calls',
  },
  {
    name: 'two whole calls of different tools, both with the index 0 and without an id',
    body: tools(piece({ index: 0 }, 'add', '{"a":1}')) + tools(piece({ index: 0 }, 'sub', '{"a":1}')) + closing(),
    events: [
      ...call(0, 'own', 'add', '{"a":1}'),
      ...call(1, 'own', 'sub', '{"a":1}'),
      end(0, 'own', 'add', '{"a":1}'),
      end(1, 'own', 'sub', '{"a":1}'),
    ],
    finish: 'tool_calls',
  },
  {
    name: 'a byte order mark before a document',
    body: `\uFEFF${JSON.stringify({ ...HEAD, choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] })}`,
    events: [text('Hello')],
  },
  {
    name: 'two whole calls in one chunk, without id and index',
    body: tools(piece({}, 'add', '{"a":1}'), piece({}, 'add', '{"a":1}')) + closing(),
    events: [
      ...call(0, 'own', 'add', '{"a":1}'),
      ...call(1, 'own', 'add', '{"a":1}'),
      end(0, 'own', 'add', '{"a":1}'),
      end(1, 'own', 'add', '{"a":1}'),
    ],
    finish: 'tool_calls',
  },
  {
    name: 'two calls interleaved by id, without an index',
    body:
      tools(piece({ id: 'c1' }, 'add', '{"a"')) +
      tools(piece({ id: 'c2' }, 'sub', '{"b"')) +
      tools(piece({ id: 'c1' }, undefined, ':1}')) +
      tools(piece({ id: 'c2' }, undefined, ':2}')) +
      closing(),
    events: [
      ...call(0, 'c1', 'add', '{"a"'),
      ...call(1, 'c2', 'sub', '{"b"'),
      { type: 'tool_arguments', index: 0, delta: ':1}' },
      { type: 'tool_arguments', index: 1, delta: ':2}' },
      end(0, 'c1', 'add', '{"a":1}'),
      end(1, 'c2', 'sub', '{"b":2}'),
    ],
    finish: 'tool_calls',
  },
  {
    name: 'two calls with one id: the second gets its own',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a":1}')) +
      tools(piece({ index: 1, id: 'c1' }, 'sub', '{"b":2}')) +
      closing(),
    events: [
      ...call(0, 'c1', 'add', '{"a":1}'),
      ...call(1, 'own', 'sub', '{"b":2}'),
      end(0, 'c1', 'add', '{"a":1}'),
      end(1, 'own', 'sub', '{"b":2}'),
    ],
    finish: 'tool_calls',
  },
];
