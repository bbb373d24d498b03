import { DONE, delta, frame } from '../support/model-backend.ts';
import { closing, type Habit, HEAD, HELLO, hello, one, piece, reasoning, text, USAGE, usage } from './habit.ts';

/** How text, reasoning, usage and the end are told. */
export const TEXT_HABITS: readonly Habit[] = [
  { name: 'text in deltas, the role first', body: hello + closing('stop'), events: HELLO },
  {
    name: 'id, model and time of the first chunk that has them (Azure: an empty chunk first)',
    body: `${frame({ id: '', model: '', created: 0, choices: [], prompt_filter_results: [] })}${hello}${closing('stop')}`,
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
  { name: 'data: without a space', body: (hello + closing('stop')).replaceAll('data: ', 'data:'), events: HELLO },
  { name: 'lines that end with CRLF', body: (hello + closing('stop')).replaceAll('\n', '\r\n'), events: HELLO },
  { name: 'lines that end with CR', body: (hello + closing('stop')).replaceAll('\n', '\r'), events: HELLO },
  {
    name: 'a byte order mark',
    body: `\uFEFF${delta({ content: 'Hel' })}${delta({ content: 'lo' })}${closing('stop')}`,
    events: HELLO,
  },
  { name: 'empty lines before the first event', body: `\n\r\n\n${hello}${closing('stop')}`, events: HELLO },
  {
    name: 'comments, ids, retries and events of other names',
    body: `: OPENROUTER PROCESSING\n\nretry: 500\nid: 7\nevent: ping\ndata: {"type":"ping"}\n\n${hello}: keep-alive\n\n${closing('stop')}`,
    events: HELLO,
  },
  {
    name: 'lines that are no fields, and data that is no JSON object',
    body: `garbage\n\ndata: ping\n\n${hello}data: 12\n\ndata:\n\n${closing('stop')}`,
    events: HELLO,
  },
  {
    name: 'events of several lines of data',
    body: `data: {"model":"m-1","choices":\ndata: [{"delta":\ndata: {"content":"Hi"}}]}\n\n${closing('stop')}`,
    events: [text('Hi')],
  },
  { name: 'no empty lines between events', body: (hello + closing('stop')).replaceAll('\n\n', '\n'), events: HELLO },
  { name: 'no empty line after the last event', body: hello + delta({}, 'stop').trimEnd(), events: HELLO },
  { name: 'an end without [DONE]', body: hello + delta({}, 'stop'), events: HELLO },
  { name: 'a [DONE] without a finish reason', body: hello + DONE, events: HELLO },
  { name: 'more after [DONE]', body: hello + closing('stop') + hello, events: HELLO },
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
      closing('stop'),
    events: HELLO,
  },
  { name: 'an answer without a word', body: delta({ role: 'assistant', content: '' }) + closing('stop'), events: [] },
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
      closing('stop'),
    events: [text('Hi')],
  },
  {
    name: 'content in parts',
    body: delta({ content: [{ type: 'text', text: 'Hi' }] }) + closing('stop'),
    events: [text('Hi')],
  },
  {
    name: 'characters outside of ASCII',
    body: delta({ content: 'Grüße 日本 🎉' }) + closing('stop'),
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
      hello +
      frame({ ...HEAD, choices: [], usage: { prompt_tokens: 'many', completion_tokens: -1 } }) +
      closing('stop'),
    events: HELLO,
  },

  // reasoning
  {
    name: 'reasoning_content',
    body: delta({ reasoning_content: 'Hm.' }) + hello + closing('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  {
    name: 'reasoning',
    body: delta({ reasoning: 'Hm.', content: '' }) + hello + closing('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  {
    name: 'reasoning in two fields at once',
    body: delta({ reasoning: 'Hm.', reasoning_content: 'Hm.' }) + hello + closing('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  {
    name: 'thinking as a field',
    body: delta({ thinking: 'Hm.' }) + hello + closing('stop'),
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
      closing('stop'),
    events: [reasoning('Hm.'), ...HELLO],
  },
  { name: 'a refusal', body: delta({ refusal: 'No.' }) + closing('stop'), events: [{ type: 'refusal', delta: 'No.' }] },

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
    body: hello + closing(given),
    events: HELLO,
    finish,
  })),
  {
    name: 'a finish reason that nobody knows',
    body: hello + closing('bored'),
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
];
