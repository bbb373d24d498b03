import { SPLIT_TYPES } from '../../environments/environment.ts';
import { list, object, orNull, type Schema, schemaRef, text } from '../../ops/openapi.ts';
import { CALL_BODY, CREATE_BODY, RANGE_BODY, SPLIT_BODY, TASK_BODY } from './bodies.ts';

const anyObject = (description: string): Schema => ({ type: 'object', description, additionalProperties: true });
const detail: Schema = orNull(anyObject('Whatever the environment adds.'));

/** Nothing more and nothing less: clients fall over it. */
const EXACTLY = { additionalProperties: false } as const;

/** One frame of a kind. */
const frame = (event: string, data: Schema): Schema => object({ event: { const: event }, data }, EXACTLY);

/** One frame of the stream of a call, or of `/create_session`; `whole` is what `chunk` and `end` are put together to. */
export const framesOf = (whole: Schema): Schema => ({
  oneOf: [
    frame('task_id', text('Of the call, to be sent back after a lost connection; or the new session id.')),
    frame('chunk', text('A piece of the JSON of the result: at most 4096 bytes.', { minLength: 1 })),
    frame('end', {
      type: 'string',
      description: 'The last piece. All pieces joined, this one included, are the JSON.',
      contentMediaType: 'application/json',
      contentSchema: whole,
    }),
    frame('error', text('What went wrong; nothing follows. It is no JSON.')),
  ],
});

/** What ORS speaks of; the bodies are those that requests are checked with. */
export const ORS_SCHEMAS: Readonly<Record<string, Schema>> = {
  OrsSplitBody: SPLIT_BODY as Schema,
  OrsTaskBody: TASK_BODY as Schema,
  OrsRangeBody: RANGE_BODY as Schema,
  OrsCreateBody: {
    ...CREATE_BODY,
    description: 'Either `task_spec`, or both `split` and `index`. Without `env_name`: the default environment.',
  },
  OrsCallBody: CALL_BODY as Schema,
  OrsTask: anyObject('A task, as its environment has it.'),
  OrsTool: object(
    {
      name: { type: 'string' },
      description: { type: 'string' },
      input_schema: orNull(anyObject('A JSON Schema.')),
    },
    EXACTLY,
  ),
  OrsTools: object({ tools: list(schemaRef('OrsTool')) }),
  OrsBlock: {
    oneOf: [
      object({ text: { type: 'string' }, detail, type: { const: 'text' } }),
      object({ data: text('Base64.'), mimeType: { type: 'string' }, detail, type: { const: 'image' } }),
    ],
  },
  OrsSplit: object({ name: { type: 'string' }, type: { enum: [...SPLIT_TYPES] } }),
  OrsSession: object({ sid: text('Of the session: to be sent as `X-Session-ID`.') }),
  OrsResult: {
    oneOf: [
      object({
        ok: { const: true },
        output: object({
          blocks: list(schemaRef('OrsBlock')),
          metadata: detail,
          reward: orNull({ type: 'number', description: '`null` is no reward, which is not 0.' }),
          finished: { type: 'boolean', description: 'The episode is over.' },
        }),
      }),
      object(
        {
          ok: { const: false },
          error: text('For the model to read.'),
          'reason?': { enum: ['not_found', 'input_validation'] },
        },
        { description: 'No such tool, an input that does not fit, or the tool itself says that it did not work.' },
      ),
    ],
  },
};
