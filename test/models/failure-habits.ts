import { DONE, frame } from '../support/model-backend.ts';
import { closing, type Habit, HEAD, HELLO, hello, piece, tools } from './habit.ts';

/** How failures are told, or not told. */
export const FAILURE_HABITS: readonly Habit[] = [
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
  { name: 'the finish reason error', body: hello + closing('error'), events: HELLO, error: { code: 'unavailable' } },
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
    body: `${hello}data: {"choices":[{"del\n\n${closing('stop')}`,
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
    body: tools(piece({ index: 0, id: 'c1' }, undefined, '{}')) + closing(),
    events: [],
    error: { code: 'bad_answer', message: /without a name/ },
  },
];
