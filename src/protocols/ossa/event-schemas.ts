import { list, object, orNull, type Schema, schemaRef, text, time } from '../../ops/openapi.ts';
import { ID_PREFIXES } from '../../streams/cursor.ts';
import { RESYNC_REASONS } from '../../streams/sink.ts';
import { EVENT_TYPES } from './event.ts';

const UUID_V7 = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';

const timestamp = time('When it was published.');
const agentId = text('A URI such as `agent://team/writer`.');
const anything: Schema = { description: 'Any JSON.' };
const sequence: Schema = { type: 'integer', minimum: 1 };

/** An event of a channel; what its publisher may add to the metadata is the same for all types. */
const channelEvent = (types: readonly string[], payload: Schema, named: Readonly<Record<string, Schema>>): Schema =>
  object({
    type: { enum: types },
    id: schemaRef('EventId'),
    timestamp,
    payload,
    metadata: object({
      agentId,
      'correlationId?': text('As it was published.'),
      'traceparent?': text('The W3C trace context of its publisher.'),
      ...named,
      sequence: { ...sequence, description: "The event's number in its partition of the log." },
      previous: {
        type: 'integer',
        minimum: 0,
        description: 'The number of the event before it in the same channel, or 0.',
      },
    }),
  });

const resync = (metadata: Schema): Schema =>
  object({
    type: { const: 'resync' },
    timestamp,
    payload: schemaRef('Loss'),
    metadata,
  });

const invoked = {
  agentId,
  streamId: { type: 'string', format: 'uuid' },
  correlationId: { type: 'string' },
} as const;

/** An event of a capability's stream. */
const capabilityEvent = (type: string, payload: Schema, last: boolean): Schema =>
  object({
    type: { const: type },
    id: schemaRef('EventId'),
    timestamp,
    payload,
    metadata: object({
      ...invoked,
      sequence: { ...sequence, description: 'From 1, without gaps.' },
      ...(last && { final: { const: true, description: 'Nothing follows.' } }),
    }),
  });

const capability = text('Its name.');

/** Frames of both kinds of streams, by the JSON of their data. */
export const EVENT_SCHEMAS: Readonly<Record<string, Schema>> = {
  ChannelName: text('Segments of letters, digits, "_" and "-" joined by dots.', {
    maxLength: 255,
    pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$',
    examples: ['content.published'],
  }),
  EventId: text('A UUIDv7 that carries its own position, behind a prefix for its type.', {
    pattern: `^(${Object.values(EVENT_TYPES).join('|')})-${UUID_V7}$`,
    examples: ['msg-01a1edd3-f383-7000-8000-0000040ebe49'],
  }),
  Cursor: text('The place in all that is followed; opaque.', {
    pattern: `^(${ID_PREFIXES.join('|')})-${UUID_V7}(~[A-Za-z0-9_-]{22})*$`,
    examples: ['pos-01a1edd3-f383-7000-8000-0000000ebe49'],
  }),
  Loss: object(
    {
      reason: { enum: RESYNC_REASONS },
      channels: { ...list({ type: 'string' }), description: 'Channels, and patterns as they were asked for.' },
      lastEventId: orNull(text('As the client sent it.')),
    },
    { description: 'Events were lost or may have been. All that is kept follows.' },
  ),
  Connected: object(
    {
      type: { const: 'connected' },
      'id?': { ...schemaRef('Cursor'), description: 'Absent if an id was given that could not be honoured.' },
      timestamp,
      payload: object({
        channels: { ...list({ type: 'string' }), description: 'What is followed.' },
        resumed: { type: 'boolean', description: 'Whether a given id was honoured.' },
      }),
      metadata: object({ agentId }),
    },
    { description: 'The first frame of a stream of channels.' },
  ),
  Resync: resync(object({ agentId })),
  Message: channelEvent(
    ['message', 'capability_response'],
    object({ channel: schemaRef('ChannelName'), data: anything }),
    {},
  ),
  Report: channelEvent(['status', 'error'], { description: 'The data itself.' }, { channel: schemaRef('ChannelName') }),
  ChannelEvent: { oneOf: [schemaRef('Message'), schemaRef('Report')] },
  ChannelFrameData: { oneOf: [schemaRef('Connected'), schemaRef('Resync'), schemaRef('ChannelEvent')] },
  CapabilityProgress: capabilityEvent(
    'capability_response',
    object(
      {
        capability,
        'delta?': text('Some more of the text.'),
        'progress?': object({
          'percent?': { type: 'number', minimum: 0, maximum: 100 },
          current: { type: 'number' },
          'total?': { type: 'number' },
        }),
        'message?': { type: 'string' },
      },
      { oneOf: [{ required: ['delta'] }, { required: ['progress'] }] },
    ),
    false,
  ),
  CapabilityResult: capabilityEvent('capability_response', object({ capability, result: anything }), true),
  CapabilityError: capabilityEvent(
    'error',
    object({
      code: { enum: ['CAPABILITY_ERROR', 'PROCESSING_ERROR', 'TIMEOUT', 'INTERNAL_ERROR'] },
      message: { type: 'string' },
      retryable: { type: 'boolean', description: 'Whether the same request may succeed later.' },
    }),
    true,
  ),
  StatusReport: object({
    type: { const: 'status' },
    id: text('Of this report alone: there is nothing to resume.', { pattern: '^status-' }),
    timestamp: time('When it was made.'),
    payload: object({
      activeAgents: { type: 'integer', minimum: 0, description: 'Agents with a running request.' },
      queueDepth: { type: 'integer', minimum: 0, description: 'Requests that wait for their agent.' },
      throughput: { type: 'number', minimum: 0, description: 'Events delivered per second.' },
    }),
    metadata: object({ agentId: text('The gateway itself.') }),
  }),
  CapabilityResync: resync(object(invoked)),
  CapabilityFrameData: {
    oneOf: ['CapabilityProgress', 'CapabilityResult', 'CapabilityError', 'CapabilityResync'].map(schemaRef),
  },
};

/** A frame of an event stream whose data is JSON. */
export const frameOf = (data: Schema): Schema =>
  object({
    'event?': { enum: ['resync', ...Object.keys(EVENT_TYPES)], description: 'Absent from the first frame.' },
    'id?': { ...schemaRef('Cursor'), description: 'To be sent back as `Last-Event-ID`.' },
    'retry?': text('Milliseconds to wait before coming back.', { pattern: '^[0-9]+$' }),
    'data?': {
      type: 'string',
      description: 'Absent from frames that only set `retry`.',
      contentMediaType: 'application/json',
      contentSchema: data,
    },
  });
