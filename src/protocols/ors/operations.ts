import {
  headerRef,
  json,
  list,
  type MediaType,
  type Method,
  object,
  type Response,
  type Schema,
  schemaRef,
} from '../../ops/openapi.ts';
import type { RefusalStatus } from '../../ops/refusals.ts';
import { framesOf } from './schemas.ts';

/** An operation before it is known where it stands and who may use it. */
export interface Described {
  readonly method: Method;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly string[];
  readonly body?: { readonly schema: Schema; readonly example: unknown; readonly optional?: boolean };
  readonly answer: Omit<Response, 'description'>;
  /** Beside those of the token. */
  readonly refusals?: readonly RefusalStatus[];
}

export const SID = '0f8fad5b-d9cb-469f-a165-70867728950e';
const TASK_ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const TASK = { a: 1, b: 2 };
const TOOLS = {
  tools: [{ name: 'submit', description: 'Ends the episode.', input_schema: { type: 'object' } }],
};
const BLOCK = { text: '1 + 2?', detail: null, type: 'text' };
const RESULT = {
  ok: true,
  output: { blocks: [{ ...BLOCK, text: 'Thanks.' }], metadata: null, reward: 1, finished: true },
};

const answered = (schema: Schema, example: unknown): Described['answer'] => ({ content: json(schema, example) });

const stream = (whole: Schema, id: string, example: unknown): Readonly<Record<string, MediaType>> => ({
  'text/event-stream': {
    schema: { type: 'string' },
    'x-itemSchema': framesOf(whole),
    example: `event: task_id\ndata: ${id}\n\nevent: end\ndata: ${JSON.stringify(example)}\n\n`,
  },
});

const session = schemaRef('OrsSession');

/** Those that name no environment. */
export const ROOT_OPERATIONS: Readonly<Record<string, Described>> = {
  list_environments: {
    method: 'get',
    operationId: 'listEnvironments',
    summary: 'The names of the environments; the first is the default one',
    answer: answered(list({ type: 'string' }), ['sums']),
  },
  version: {
    method: 'get',
    operationId: 'orsVersion',
    summary: 'The version of the gateway',
    answer: answered(object({ version: { type: 'string' }, build_sha: { type: 'string' } }), {
      version: '0.1.0',
      build_sha: 'unknown',
    }),
  },
  create_session: {
    method: 'post',
    operationId: 'issueSessionId',
    summary: 'A new session id',
    description: 'A stream if `Accept` lists text/event-stream, otherwise JSON. The body is not looked at.',
    body: { schema: { type: 'object', additionalProperties: true }, example: {}, optional: true },
    answer: { content: { ...stream(session, SID, { sid: SID }), ...json(session, { sid: SID }) } },
  },
  create: {
    method: 'post',
    operationId: 'createSession',
    summary: 'Begin an episode',
    description: 'Answered at once: the setup goes on, and whatever needs it waits for it. Any session id will do.',
    parameters: ['SessionId', 'Secrets', 'Deployment'],
    body: { schema: schemaRef('OrsCreateBody'), example: { env_name: 'sums', split: 'train', index: 0 } },
    answer: {
      ...answered(session, { sid: SID }),
      headers: { 'X-Sluice-Idempotency': headerRef('SluiceIdempotency') },
    },
    refusals: [400, 404, 413, 429],
  },
  ping: {
    method: 'post',
    operationId: 'pingSession',
    summary: 'Keep a session alive',
    parameters: ['SessionId'],
    answer: answered(object({ status: { const: 'ok' } }), { status: 'ok' }),
    refusals: [400, 404, 410],
  },
  delete: {
    method: 'post',
    operationId: 'deleteSession',
    summary: 'End a session; answered when its teardown is over',
    description: 'Also for a session that is over already, or an id that was issued and never used.',
    parameters: ['SessionId'],
    answer: answered(session, { sid: SID }),
    refusals: [400, 404],
  },
  delete_session: {
    method: 'post',
    operationId: 'returnSessionId',
    summary: 'Does nothing; clients send it behind `/delete`',
    parameters: ['SessionId'],
    answer: answered(session, { sid: SID }),
    refusals: [400],
  },
};

const BODY = 'A body is read as JSON whatever its Content-Type says, up to 16 MiB.';
const BY_SPLIT = { schema: schemaRef('OrsSplitBody'), example: { split: 'train' } };
const tasks = object({ tasks: list(schemaRef('OrsTask')), env_name: { type: 'string' } });

/** The nine that every environment has, and that also stand alone. */
export const ENVIRONMENT_OPERATIONS: Readonly<Record<string, Described>> = {
  tools: {
    method: 'get',
    operationId: 'sharedTools',
    summary: 'The tools that all tasks share',
    answer: answered(schemaRef('OrsTools'), TOOLS),
  },
  splits: {
    method: 'get',
    operationId: 'splits',
    summary: 'The splits of the tasks',
    answer: answered(list(schemaRef('OrsSplit')), [{ name: 'train', type: 'train' }]),
  },
  tasks: {
    method: 'post',
    operationId: 'tasks',
    summary: 'All tasks of a split',
    description: BODY,
    body: BY_SPLIT,
    answer: answered(tasks, { tasks: [TASK], env_name: 'sums' }),
    refusals: [400, 413],
  },
  num_tasks: {
    method: 'post',
    operationId: 'countTasks',
    summary: 'How many tasks a split has',
    description: BODY,
    body: BY_SPLIT,
    answer: answered(object({ num_tasks: { type: 'integer' } }), { num_tasks: 1 }),
    refusals: [400, 413],
  },
  task: {
    method: 'post',
    operationId: 'task',
    summary: 'One task of a split',
    description: BODY,
    body: { schema: schemaRef('OrsTaskBody'), example: { split: 'train', index: 0 } },
    answer: answered(object({ task: schemaRef('OrsTask'), env_name: { type: 'string' } }), {
      task: TASK,
      env_name: 'sums',
    }),
    refusals: [400, 413],
  },
  task_range: {
    method: 'post',
    operationId: 'taskRange',
    summary: 'Some tasks of a split, as a slice of Python gives them',
    description: BODY,
    body: { schema: schemaRef('OrsRangeBody'), example: { split: 'train', start: -2, stop: null } },
    answer: answered(tasks, { tasks: [TASK], env_name: 'sums' }),
    refusals: [400, 413],
  },
  task_tools: {
    method: 'get',
    operationId: 'sessionTools',
    summary: 'The tools of a session: those that all tasks share, and those of its task',
    parameters: ['SessionId'],
    answer: answered(schemaRef('OrsTools'), TOOLS),
    refusals: [400, 410],
  },
  prompt: {
    method: 'get',
    operationId: 'prompt',
    summary: 'What a session begins with',
    parameters: ['SessionId'],
    answer: answered(list(schemaRef('OrsBlock')), [BLOCK]),
    refusals: [400, 410],
  },
  call: {
    method: 'post',
    operationId: 'callTool',
    summary: 'Call a tool, or follow a call again',
    description: `With \`task_id\` the call of that id is streamed again, from its beginning, and nothing is run. A call whose client has gone runs on; the same request of the same session within 60 s joins it. ${BODY}`,
    parameters: ['SessionId', 'CallKey'],
    body: { schema: schemaRef('OrsCallBody'), example: { name: 'submit', input: { sum: 3 } } },
    answer: {
      headers: { 'X-Sluice-Idempotency': headerRef('SluiceIdempotency') },
      content: stream(schemaRef('OrsResult'), TASK_ID, RESULT),
    },
    refusals: [400, 409, 410, 413, 429],
  },
};
