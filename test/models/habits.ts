import type { ModelEvent } from '../../src/models/model.ts';
import type { ModelErrorCode } from '../../src/models/model-error.ts';
import { DONE, delta, frame } from '../support/model-backend.ts';
import type { Collected } from './collect.ts';

/** What a backend sends, and what has to come out whatever its habits. */
export interface Habit {
  readonly name: string;
  readonly body: string | Buffer;
  /** Without start and finish, unless `start` is asked for. Ids that we made are `own`. */
  readonly events?: readonly unknown[];
  /** Default `stop`. */
  readonly finish?: unknown;
  readonly start?: unknown;
  readonly error?: { readonly code: ModelErrorCode; readonly message?: RegExp; readonly status?: number };
}

const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm-1' };
const text = (delta: string): ModelEvent => ({ type: 'text', delta });
const reasoning = (delta: string): ModelEvent => ({ type: 'reasoning', delta });
const HELLO = [text('Hel'), text('lo')];

/** One call as it comes out, its arguments in these pieces. */
const call = (index: number, id: string, name: string, ...pieces: string[]): ModelEvent[] => [
  { type: 'tool_call', index, id, name },
  ...pieces.map((delta): ModelEvent => ({ type: 'tool_arguments', index, delta })),
];
const end = (index: number, id: string, name: string, all: string): ModelEvent => ({
  type: 'tool_call_end',
  ...{ index, id, name, arguments: all },
});
const one = (id: string, ...pieces: string[]): ModelEvent[] => [
  ...call(0, id, 'add', ...pieces),
  end(0, id, 'add', pieces.join('')),
];

const tools = (...fragments: unknown[]): string => delta({ tool_calls: fragments });
const piece = (fields: object, name?: string, args?: unknown): unknown => ({
  ...fields,
  type: 'function',
  function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) },
});
const end_ = (reason = 'tool_calls'): string => delta({}, reason) + DONE;
const hello = delta({ role: 'assistant', content: '' }) + delta({ content: 'Hel' }) + delta({ content: 'lo' });
const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const usage = { type: 'usage', input: 3, output: 2, total: 5 };

export const HABITS: readonly Habit[] = [
  { name: 'text in deltas, the role first', body: hello + end_('stop'), events: HELLO },
  {
    name: 'id, model and time of the first chunk that has them (Azure: an empty chunk first)',
    body: `${frame({ id: '', model: '', created: 0, choices: [], prompt_filter_results: [] })}${hello}${end_('stop')}`,
    events: HELLO,
    start: { type: 'start', id: 'chatcmpl-1', model: 'm-1', created: 1_700_000_000 },
  },
  {
    name: 'no id, model or time at all',
    body:
      frame({ choices: [{ delta: { content: 'Hi' } }] }) +
      frame({ choices: [{ delta: {}, finish_reason: 'stop' }] }) +
      DONE,
    events: [text('Hi')],
    start: { type: 'start', id: expect.stringMatching(/^chatcmpl-/), model: 'asked', created: expect.any(Number) },
    finish: { type: 'finish', reason: 'stop', model: 'asked' },
  },
  { name: 'data: without a space', body: (hello + end_('stop')).replaceAll('data: ', 'data:'), events: HELLO },
  { name: 'lines that end with CRLF', body: (hello + end_('stop')).replaceAll('\n', '\r\n'), events: HELLO },
  { name: 'lines that end with CR', body: (hello + end_('stop')).replaceAll('\n', '\r'), events: HELLO },
  {
    name: 'a byte order mark',
    body: `\uFEFF${delta({ content: 'Hel' })}${delta({ content: 'lo' })}${end_('stop')}`,
    events: HELLO,
  },
  { name: 'empty lines before the first event', body: `\n\r\n\n${hello}${end_('stop')}`, events: HELLO },
  {
    name: 'comments, ids, retries and events of other names',
    body: `: OPENROUTER PROCESSING\n\nretry: 500\nid: 7\nevent: ping\ndata: {"type":"ping"}\n\n${hello}: keep-alive\n\n${end_('stop')}`,
    events: HELLO,
  },
  {
    name: 'lines that are no fields, and data that is no JSON object',
    body: `garbage\n\ndata: ping\n\n${hello}data: 12\n\ndata:\n\n${end_('stop')}`,
    events: HELLO,
  },
  {
    name: 'events of several lines of data',
    body: `data: {"model":"m-1","choices":\ndata: [{"delta":\ndata: {"content":"Hi"}}]}\n\n${end_('stop')}`,
    events: [text('Hi')],
  },
  { name: 'no empty lines between events', body: (hello + end_('stop')).replaceAll('\n\n', '\n'), events: HELLO },
  { name: 'no empty line after the last event', body: hello + delta({}, 'stop').trimEnd(), events: HELLO },
  { name: 'an end without [DONE]', body: hello + delta({}, 'stop'), events: HELLO },
  { name: 'a [DONE] without a finish reason', body: hello + DONE, events: HELLO },
  { name: 'more after [DONE]', body: hello + end_('stop') + hello, events: HELLO },
  {
    name: 'the finish reason in the chunk of the last text',
    body: hello.replace('"lo"},"finish_reason":null', '"lo"},"finish_reason":"stop"') + DONE,
    events: HELLO,
  },
  {
    name: 'text after the finish reason',
    body: delta({ content: 'Hel' }, 'stop') + delta({ content: 'lo' }, 'stop') + DONE,
    events: HELLO,
  },
  {
    name: 'deltas that are null, empty or missing',
    body:
      delta(null) +
      delta({ content: null }) +
      delta({ content: '' }) +
      frame({ ...HEAD, choices: [{ index: 0 }] }) +
      hello +
      end_('stop'),
    events: HELLO,
  },
  { name: 'an answer without a word', body: delta({ role: 'assistant', content: '' }) + end_('stop'), events: [] },
  {
    name: 'further choices, which nobody asked for',
    body:
      frame({ ...HEAD, choices: [{ index: 1, delta: { content: 'other' } }] }) +
      frame({
        ...HEAD,
        choices: [
          { index: 1, delta: { content: 'x' } },
          { index: 0, delta: { content: 'Hi' } },
        ],
      }) +
      end_('stop'),
    events: [text('Hi')],
  },
  {
    name: 'content in parts',
    body: delta({ content: [{ type: 'text', text: 'Hi' }] }) + end_('stop'),
    events: [text('Hi')],
  },
  {
    name: 'characters outside of ASCII',
    body: delta({ content: 'Grüße 日本 🎉' }) + end_('stop'),
    events: [text('Grüße 日本 🎉')],
  },

  // usage
  {
    name: 'usage in a chunk without choices',
    body: hello + delta({}, 'stop') + frame({ ...HEAD, choices: [], usage: USAGE }) + DONE,
    events: [...HELLO, usage],
  },
  {
    name: 'usage in the last chunk',
    body: hello + frame({ ...HEAD, choices: [{ delta: {}, finish_reason: 'stop' }], usage: USAGE }) + DONE,
    events: [...HELLO, usage],
  },
  {
    name: 'usage in every chunk, null or rising',
    body:
      frame({ ...HEAD, choices: [{ delta: { content: 'Hel' } }], usage: null }) +
      frame({
        ...HEAD,
        choices: [{ delta: { content: 'lo' } }],
        usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
      }) +
      frame({ ...HEAD, choices: [{ delta: {}, finish_reason: 'stop' }], usage: USAGE }) +
      DONE,
    events: [...HELLO, usage],
  },
  {
    name: 'usage with details, without a total',
    body:
      hello +
      frame({
        ...HEAD,
        choices: [{ delta: {}, finish_reason: 'stop' }],
        usage: {
          prompt_tokens: 3,
          completion_tokens: 2,
          prompt_tokens_details: { cached_tokens: 1 },
          completion_tokens_details: { reasoning_tokens: 0 },
        },
      }),
    events: [...HELLO, { ...usage, cached: 1, reasoning: 0 }],
  },
  {
    name: 'usage in the choice (Moonshot)',
    body: hello + frame({ ...HEAD, choices: [{ delta: {}, finish_reason: 'stop', usage: USAGE }] }) + DONE,
    events: [...HELLO, usage],
  },
  {
    name: 'usage in a field of its own (Groq)',
    body: hello + frame({ ...HEAD, choices: [{ delta: {}, finish_reason: 'stop' }], x_groq: { usage: USAGE } }) + DONE,
    events: [...HELLO, usage],
  },
  {
    name: 'usage that makes no sense',
    body:
      hello + frame({ ...HEAD, choices: [], usage: { prompt_tokens: 'many', completion_tokens: -1 } }) + end_('stop'),
    events: HELLO,
  },

  // reasoning
  {
    name: 'reasoning_content',
    body: delta({ reasoning_content: 'Hm.' }) + hello + end_('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  {
    name: 'reasoning',
    body: delta({ reasoning: 'Hm.', content: '' }) + hello + end_('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  {
    name: 'reasoning in two fields at once',
    body: delta({ reasoning: 'Hm.', reasoning_content: 'Hm.' }) + hello + end_('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  {
    name: 'thinking as a field',
    body: delta({ thinking: 'Hm.' }) + hello + end_('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  {
    name: 'thinking as a part of the content (Mistral)',
    body:
      delta({
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
          { type: 'text', text: 'Hel' },
        ],
      }) +
      delta({ content: 'lo' }) +
      end_('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  { name: 'a refusal', body: delta({ refusal: 'No.' }) + end_('stop'), events: [{ type: 'refusal', delta: 'No.' }] },

  // one tool call
  {
    name: 'a call in fragments',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '')) +
      tools(piece({ index: 0 }, undefined, '{"a":')) +
      tools(piece({ index: 0 }, undefined, '1}')) +
      end_(),
    events: one('c1', '{"a":', '1}'),
    finish: 'tool_calls',
  },
  {
    name: 'a call in one chunk (Ollama)',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', '{"x":1}')) + end_(),
    events: one('c1', '{"x":1}'),
    finish: 'tool_calls',
  },
  {
    name: 'id and name in every fragment',
    body: ['{"a"', ':1', '}'].map((args) => tools(piece({ index: 0, id: 'c1' }, 'add', args))).join('') + end_(),
    events: one('c1', '{"a"', ':1', '}'),
    finish: 'tool_calls',
  },
  {
    name: 'name in every fragment, neither id nor index',
    body: ['{"a"', ':1', '}'].map((args) => tools(piece({}, 'add', args))).join('') + end_(),
    events: one('own', '{"a"', ':1', '}'),
    finish: 'tool_calls',
  },
  {
    name: 'no id, or an empty one',
    body: tools(piece({ index: 0, id: '' }, 'add', '{"a"')) + tools(piece({ index: 0, id: '' }, '', ':1}')) + end_(),
    events: one('own', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'no index',
    body: tools(piece({ id: 'c1' }, 'add', '{"a"')) + tools(piece({}, undefined, ':1}')) + end_(),
    events: one('c1', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'arguments as an object',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', { a: 1 })) + end_(),
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
    body: tools(piece({ index: 0, id: 'c1' }, 'add', args)) + end_(),
    events: one('c1', '{}'),
    finish: 'tool_calls',
  })),
  {
    name: 'an empty object in the place of arguments that follow',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '{}')) +
      tools(piece({ index: 0 }, undefined, '{"a"')) +
      tools(piece({ index: 0 }, undefined, ':1}')) +
      end_(),
    events: one('c1', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'the whole call again at the end',
    body:
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a"')) +
      tools(piece({ index: 0 }, undefined, ':1}')) +
      tools(piece({ index: 0, id: 'c1' }, 'add', '{"a":1}')) +
      end_(),
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
        .join('') + end_(),
    events: one('c1', '{"a":', '{"b":', '{}', '}', ',"c":"}"', ',"d":"', '{', '"}'),
    finish: 'tool_calls',
  },
  {
    name: 'the name after the first arguments',
    body: tools(piece({ index: 0, id: 'c1' }, undefined, '{"a"')) + tools(piece({ index: 0 }, 'add', ':1}')) + end_(),
    events: one('c1', '{"a"', ':1}'),
    finish: 'tool_calls',
  },
  {
    name: 'text before a call, which stays',
    body: hello + tools(piece({ index: 0, id: 'c1' }, 'add', '{}')) + end_(),
    events: [...HELLO, ...one('c1', '{}')],
    finish: 'tool_calls',
  },
  {
    name: 'a call that ends with "stop"',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', '{}')) + end_('stop'),
    events: one('c1', '{}'),
    finish: 'tool_calls',
  },
  {
    name: 'a call that is cut off by its length',
    body: tools(piece({ index: 0, id: 'c1' }, 'add', '{"a"')) + end_('length'),
    events: one('c1', '{"a"'),
    finish: 'length',
  },
  { name: 'tool_calls as the reason, but none of them', body: hello + end_('tool_calls'), events: HELLO },
  {
    name: 'a function_call in fragments',
    body:
      delta({ function_call: { name: 'add', arguments: '' } }) +
      delta({ function_call: { arguments: '{"a":' } }) +
      delta({ function_call: { arguments: '1}' } }) +
      end_('function_call'),
    events: one('own', '{"a":', '1}'),
    finish: 'tool_calls',
  },
  {
    name: 'a call that is told in both ways',
    body:
      delta({
        tool_calls: [piece({ index: 0, id: 'c1' }, 'add', '{}')],
        function_call: { name: 'add', arguments: '{}' },
      }) + end_('tool_calls'),
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
      end_(),
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
      end_(),
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
      end_(),
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
      end_(),
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
    body: tools(piece({ index: 0 }, 'add', '{"a":1}'), piece({ index: 0 }, 'add', '{"a":1}')) + end_(),
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
    body: tools(piece({ index: 0 }, 'add', '{"a":1}')) + tools(piece({ index: 0 }, 'sub', '{"a":1}')) + end_(),
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
    body: tools(piece({}, 'add', '{"a":1}'), piece({}, 'add', '{"a":1}')) + end_(),
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
      end_(),
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
      end_(),
    events: [
      ...call(0, 'c1', 'add', '{"a":1}'),
      ...call(1, 'own', 'sub', '{"b":2}'),
      end(0, 'c1', 'add', '{"a":1}'),
      end(1, 'own', 'sub', '{"b":2}'),
    ],
    finish: 'tool_calls',
  },

  // the end
  ...Object.entries({
    length: 'length',
    content_filter: 'content_filter',
    MAX_TOKENS: 'length',
    STOP: 'stop',
    eos: 'stop',
    SAFETY: 'content_filter',
  }).map(([given, finish]) => ({
    name: `the finish reason ${given}`,
    body: hello + end_(given),
    events: HELLO,
    finish,
  })),
  {
    name: 'a finish reason that nobody knows',
    body: hello + end_('bored'),
    events: HELLO,
    finish: { type: 'finish', reason: 'stop', model: 'm-1', detail: 'bored' },
  },

  // one document instead of a stream
  {
    name: 'one document instead of a stream',
    body: JSON.stringify({
      ...HEAD,
      object: 'chat.completion',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hello', reasoning_content: 'Hm.' }, finish_reason: 'stop' },
      ],
      usage: USAGE,
    }),
    events: [reasoning('Hm.'), text('Hello'), usage],
    start: { type: 'start', id: 'chatcmpl-1', model: 'm-1', created: 1_700_000_000 },
  },
  {
    name: 'one document with calls, written over several lines',
    body: JSON.stringify(
      {
        ...HEAD,
        choices: [
          {
            message: { content: null, tool_calls: [piece({ id: 'c1' }, 'add', '{"a":1}')] },
            finish_reason: 'tool_calls',
          },
        ],
      },
      null,
      2,
    ),
    events: one('c1', '{"a":1}'),
    finish: 'tool_calls',
  },

  // failures
  {
    name: 'an error in the stream',
    body: hello + frame({ error: { message: 'out of memory', type: 'server_error', code: null } }),
    events: HELLO,
    error: { code: 'unavailable', message: /out of memory/ },
  },
  {
    name: 'an error of words only',
    body: frame({ error: 'model is loading' }),
    error: { code: 'unavailable', message: /model is loading/ },
  },
  {
    name: 'an error with a status',
    body: hello + frame({ error: { message: 'slow down', code: 429 } }),
    events: HELLO,
    error: { code: 'rate_limited', message: /slow down/, status: 429 },
  },
  {
    name: 'an event of the name error',
    body: `${hello}event: error\ndata: {"message":"gone wrong"}\n\n`,
    events: HELLO,
    error: { code: 'unavailable', message: /gone wrong/ },
  },
  {
    name: 'an event of the name error, in words',
    body: `event: error\ndata: gone wrong\n\n`,
    error: { code: 'unavailable', message: /: gone wrong$/ },
  },
  {
    name: 'an object that is an error (vLLM)',
    body: frame({ object: 'error', message: 'prompt is too long', type: 'BadRequestError', code: 400 }),
    error: { code: 'context_length', status: 400 },
  },
  {
    name: 'an error inside of a choice',
    body:
      hello +
      frame({
        ...HEAD,
        choices: [{ delta: {}, error: { code: 502, message: 'upstream gone' }, finish_reason: 'error' }],
      }),
    events: HELLO,
    error: { code: 'unavailable', message: /upstream gone/, status: 502 },
  },
  { name: 'the finish reason error', body: hello + end_('error'), events: HELLO, error: { code: 'unavailable' } },
  {
    name: 'an error as a document with the status 200',
    body: JSON.stringify({ error: { message: 'no such model', code: 'model_not_found' } }),
    error: { code: 'not_found', message: /no such model/ },
  },
  {
    name: 'an end in the middle of the answer',
    body: hello,
    events: HELLO,
    error: { code: 'unavailable', message: /in the middle/ },
  },
  {
    name: 'an end in the middle of a line',
    body: `${hello}data: {"choices":[{"del`,
    events: HELLO,
    error: { code: 'unavailable', message: /in the middle/ },
  },
  {
    name: 'a chunk that is broken',
    body: `${hello}data: {"choices":[{"del\n\n${end_('stop')}`,
    events: HELLO,
    error: { code: 'bad_answer', message: /not JSON/ },
  },
  { name: 'nothing at all', body: '', error: { code: 'bad_answer', message: /empty/ } },
  { name: 'nothing but [DONE]', body: DONE, error: { code: 'bad_answer', message: /empty/ } },
  { name: 'nothing but comments', body: ': hello\n\n: bye\n\n', error: { code: 'bad_answer', message: /empty/ } },
  {
    name: 'a web page',
    body: '<!doctype html><html><body>Sign in</body></html>',
    error: { code: 'bad_answer', message: /web page/ },
  },
  { name: 'a document of something else', body: '{"status":"ok"}', error: { code: 'bad_answer', message: /empty/ } },
  { name: 'a document that is broken', body: '{"choices":[{"mess', error: { code: 'bad_answer', message: /not JSON/ } },
  {
    name: 'a call without a name',
    body: tools(piece({ index: 0, id: 'c1' }, undefined, '{}')) + end_(),
    events: [],
    error: { code: 'bad_answer', message: /without a name/ },
  },
];

/** Ids that we made differ; they all begin alike. */
const withoutOwnIds = (events: readonly ModelEvent[]): unknown =>
  JSON.parse(JSON.stringify(events).replaceAll(/own-\d+|call_[\da-f-]{36}/g, 'own'));

export const expectHabit = (habit: Habit, { events, error }: Collected): void => {
  const [start] = events;
  const last = events.at(-1);
  if (habit.error) {
    expect(error).toMatchObject({
      code: habit.error.code,
      ...(habit.error.message && { message: expect.stringMatching(habit.error.message) }),
      ...(habit.error.status && { status: habit.error.status }),
    });
    expect(last?.type).not.toBe('finish');
    expect(withoutOwnIds(events.slice(1))).toEqual(habit.events ?? []);
    return;
  }
  expect(error).toBeUndefined();
  expect(start?.type).toBe('start');
  if (habit.start) expect(start).toEqual(habit.start);
  expect(withoutOwnIds(events.slice(1, -1))).toEqual(habit.events);
  const { finish = 'stop' } = habit;
  expect(last).toEqual(typeof finish === 'string' ? { type: 'finish', reason: finish, model: 'm-1' } : finish);
};
