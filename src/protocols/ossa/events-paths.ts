import { TOKEN } from '../../auth/openapi.ts';
import {
  type ApiPart,
  json,
  list,
  type MediaType,
  object,
  type Parameter,
  parameterRef,
  type Schema,
  schemaRef,
} from '../../ops/openapi.ts';
import { tokenRefusals } from '../../ops/refusals.ts';
import { EVENT_SCHEMAS, frameOf } from './event-schemas.ts';
import { IDEMPOTENCY_KEY, POSTED_SCHEMA } from './publish.ts';

const AGENT = 'agent://default/gateway';
const CURSOR = 'pos-01a1edd3-f383-7000-8000-0000000ebe49';
const EVENT = {
  type: 'message',
  id: 'msg-01a1edd3-f383-7000-8000-0000040ebe49',
  timestamp: '2026-01-01T12:00:00.000Z',
  payload: { channel: 'content.published', data: { contentId: 'node-123' } },
  metadata: { agentId: AGENT, sequence: 1, previous: 0 },
};

const frame = (lines: Readonly<Record<string, unknown>>): string =>
  `${Object.entries(lines)
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}\n`)
    .join('')}\n`;

/** An event stream; `data` is the JSON that stands in its frames. */
export const eventStream = (data: Schema, example: string): Readonly<Record<string, MediaType>> => ({
  'text/event-stream': { schema: { type: 'string' }, 'x-itemSchema': frameOf(data), example },
});

const CHANNEL_STREAM =
  frame({
    retry: 3000,
    id: CURSOR,
    data: {
      type: 'connected',
      id: CURSOR,
      timestamp: EVENT.timestamp,
      payload: { channels: ['content.published'], resumed: false },
      metadata: { agentId: AGENT },
    },
  }) + frame({ event: EVENT.type, id: EVENT.id, data: EVENT });

const query = (name: string, description: string, schema: Schema): Parameter => ({
  name,
  in: 'query',
  description,
  schema,
});

const uuid: Schema = { type: 'string', format: 'uuid' };

/** One event as it is posted. The grammar of channels is said here; the gateway has a message of its own for it. */
const posted: Schema = {
  ...POSTED_SCHEMA,
  properties: { ...POSTED_SCHEMA.properties, channel: schemaRef('ChannelName') },
};

const POSTED = { channel: 'content.published', data: { contentId: 'node-123' } };

export const eventsPart: ApiPart = {
  tag: { name: 'events', description: 'Channels: follow them and publish on them.' },
  paths: {
    '/events': {
      get: {
        operationId: 'follow',
        summary: 'Follow channels, or the stream of a capability',
        description:
          'A stream, or, if `Accept` lists application/json and not text/event-stream, one answer of long-polling. Without `channels` every channel that manifests declare for this endpoint and the token may see.',
        parameters: [
          {
            ...query(
              'channels',
              'Names and patterns: `*` is one segment, `#` (written `%23` or `**`), only last, one or more.',
              { type: 'array', minItems: 1, items: { type: 'string', maxLength: 255 } },
            ),
            style: 'form',
            explode: false,
            example: ['content.published', 'agent.*'],
          },
          parameterRef('LastEventIdHeader'),
          parameterRef('LastEventId'),
          query('cursor', 'Another name of `lastEventId`, for long-polling.', { type: 'string' }),
          query('wait', 'How many seconds an answer of long-polling may take, at most 25.', {
            type: 'string',
            pattern: '^[0-9]{1,5}(\\.[0-9]{1,3})?$',
          }),
          query(
            'stream',
            'The stream of a capability, as at `/events/stream/{id}`; not together with `channels`.',
            uuid,
          ),
          query('task', 'The same.', uuid),
        ],
        responses: {
          '200': {
            description: 'The stream; or, for long-polling, what has happened since the cursor.',
            content: {
              ...eventStream(
                { anyOf: [schemaRef('ChannelFrameData'), schemaRef('CapabilityFrameData')] },
                CHANNEL_STREAM,
              ),
              ...json(schemaRef('Polled'), { events: [EVENT], cursor: 'pos-01a1edd3-f383-7000-8000-0000040ebe49' }),
            },
          },
          '204': { description: 'The stream of a capability has ended and the client has all of it.' },
          ...tokenRefusals(400, 404, 429),
        },
      },
      post: {
        operationId: 'publish',
        summary: 'Publish an event, or several',
        description: 'All of a list or none. A body is read as JSON whatever its Content-Type says, up to 8 MiB.',
        security: TOKEN,
        parameters: [parameterRef('IdempotencyKey'), parameterRef('Traceparent')],
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: { oneOf: [schemaRef('NewEvent'), { ...list(schemaRef('NewEvent')), minItems: 1 }] },
              examples: { one: { value: POSTED }, several: { value: [POSTED, { ...POSTED, type: 'status' }] } },
            },
          },
        },
        responses: {
          '201': {
            description: 'Stored, and on the way to those who follow.',
            content: {
              'application/json': {
                schema: {
                  oneOf: [object({ id: schemaRef('EventId') }), object({ ids: list(schemaRef('EventId')) })],
                },
                examples: { one: { value: { id: EVENT.id } }, several: { value: { ids: [EVENT.id] } } },
              },
            },
          },
          ...tokenRefusals(400, 409, 413, 429),
        },
      },
    },
  },
  components: {
    schemas: {
      ...EVENT_SCHEMAS,
      NewEvent: posted,
      Polled: object({
        events: list(schemaRef('ChannelEvent')),
        cursor: { type: 'string', description: 'For the next request.' },
        'resync?': { ...list(schemaRef('Loss')), minItems: 1 },
      }),
    },
    parameters: {
      LastEventIdHeader: {
        name: 'Last-Event-ID',
        in: 'header',
        description: 'The last `id` that was received: the stream goes on behind it. Wins over the query.',
        schema: { type: 'string' },
        example: CURSOR,
      },
      LastEventId: query('lastEventId', 'The same, for clients that cannot send headers.', { type: 'string' }),
      IdempotencyKey: {
        name: 'Idempotency-Key',
        in: 'header',
        description: 'The same request with the same key has no further effect, and gets the same ids.',
        schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
        example: 'order-4711',
      },
      Traceparent: {
        name: 'traceparent',
        in: 'header',
        description: 'A W3C trace context, passed on to those who follow; an invalid one is ignored.',
        schema: { type: 'string' },
        example: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      },
    },
  },
};
