import {
  type ApiPart,
  type Components,
  headerRef,
  json,
  object,
  type Schema,
  schemaRef,
  text,
} from '../ops/openapi.ts';
import { REFUSALS, type RefusalStatus } from '../ops/refusals.ts';
import { apiShape, orsShape, ossaShape, type Shape } from './group.ts';
import { PROBLEMS, Problem, type ProblemCode } from './problem.ts';

const STATUSES = Object.keys(REFUSALS).map(Number) as RefusalStatus[];

const code: Schema = { enum: Object.keys(PROBLEMS) };

const DESCRIPTIONS: Readonly<Record<RefusalStatus, string>> = {
  400: 'The request is wrong; the message says what and where.',
  401: 'No token, or a bad or expired one.',
  403: 'The token is good but does not permit this; or credentials came over plain HTTP, or from a page that is not trusted.',
  404: 'There is no such thing, or it is not yours.',
  409: 'It goes against something that is there already.',
  410: 'There was one, and it is over.',
  413: 'The body, an event or a list of events is too large.',
  429: 'More than is permitted.',
  500: 'A fault of the gateway.',
  503: 'The store, or whoever has the keys, is away. Nothing was done.',
};

const EXAMPLES: Readonly<Record<RefusalStatus, readonly [code: ProblemCode, message: string]>> = {
  400: ['PROTOCOL_ERROR', '/channel is missing.'],
  401: ['AUTH_FAILED', 'The request carries no token.'],
  403: ['FORBIDDEN', 'This needs the scope admin.'],
  404: ['NOT_FOUND', 'There is no agent "writer".'],
  409: ['CONFLICT', 'The idempotency key was used for other events.'],
  410: ['GONE', 'Session deleted'],
  413: ['PAYLOAD_TOO_LARGE', 'The body is too large.'],
  429: ['RATE_LIMIT_EXCEEDED', 'You have as many open streams as you may.'],
  500: ['INTERNAL_ERROR', 'Something went wrong in the gateway.'],
  503: ['UNAVAILABLE', 'The event store is away.'],
};

const headersOf = (status: RefusalStatus): Pick<NonNullable<Components['responses']>[string], 'headers'> => {
  if (status === 401) return { headers: { 'WWW-Authenticate': headerRef('WwwAuthenticate') } };
  return status === 429 || status === 503 ? { headers: { 'Retry-After': headerRef('RetryAfter') } } : {};
};

/** The same refusals in the shape of one group of routes. */
const responsesAs = (prefix: string, schema: string, shape: Shape): NonNullable<Components['responses']> =>
  Object.fromEntries(
    STATUSES.map((status) => [
      `${prefix}${REFUSALS[status]}`,
      {
        description: DESCRIPTIONS[status],
        ...headersOf(status),
        content: json(schemaRef(schema), shape(new Problem(...EXAMPLES[status]))),
      },
    ]),
  );

/** How the groups of routes say no. */
export const refusalPart: ApiPart = {
  components: {
    schemas: {
      Error: object({
        code,
        message: text('For people.'),
        'details?': {
          type: 'object',
          description: 'What exactly was wrong, for programs: `path`, `channels`, `names` or `scopes`.',
          additionalProperties: true,
        },
      }),
      ApiError: object({ error: text('For people.'), code }),
      OrsError: object({ detail: text('For people.') }),
    },
    headers: {
      RetryAfter: {
        description: 'Seconds after which the same request may succeed.',
        schema: { type: 'string', pattern: '^[0-9]+$' },
        example: '5',
      },
      WwwAuthenticate: {
        description: 'As RFC 6750 has it.',
        schema: { type: 'string', pattern: '^Bearer realm="sluice"' },
        example: 'Bearer realm="sluice"',
      },
    },
    responses: {
      ...responsesAs('', 'Error', ossaShape),
      ...responsesAs('Api', 'ApiError', apiShape),
      ...responsesAs('Ors', 'OrsError', orsShape),
    },
  },
};
