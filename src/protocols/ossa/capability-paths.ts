import { TOKEN } from '../../auth/openapi.ts';
import {
  type ApiPart,
  json,
  type MediaType,
  type Operation,
  object,
  parameterRef,
  schemaRef,
  text,
} from '../../ops/openapi.ts';
import { tokenRefusals } from '../../ops/refusals.ts';
import { INVOKED_SCHEMA } from './capability-routes.ts';
import { eventStream } from './events-paths.ts';

const ID = '0f8fad5b-d9cb-469f-a165-70867728950e';
const RESULT = {
  type: 'capability_response',
  id: 'resp-01a1edd3-f383-7000-8000-000004000000',
  timestamp: '2026-01-01T12:00:00.000Z',
  payload: { capability: 'write_text', result: { text: 'Once.' } },
  metadata: { agentId: 'agent://default/writer', streamId: ID, correlationId: 'req-789', sequence: 1, final: true },
};

const invocation = (operationId: string, summary: string, content: Readonly<Record<string, MediaType>>): Operation => ({
  operationId,
  summary,
  description:
    'Needs the scope `capabilities`, and those that the manifest asks for. The name is qualified (`agent.capability`) where several agents offer it.',
  security: TOKEN,
  parameters: [parameterRef('CapabilityName'), parameterRef('CorrelationId'), parameterRef('IdempotencyKey')],
  requestBody: { required: true, content },
  responses: {
    '202': {
      description: 'It has begun.',
      content: json(schemaRef('Started'), {
        streamId: ID,
        taskId: ID,
        streamUrl: `https://gateway.example/events/stream/${ID}?ticket=r1.eyJ1Ijoi.c2lnbmVk`,
        correlationId: 'req-789',
      }),
    },
    ...tokenRefusals(400, 404, 409, 413, 429),
  },
});

export const capabilitiesPart: ApiPart = {
  tag: { name: 'capabilities', description: 'What agents can do, and the streams of their doing it.' },
  paths: {
    '/capabilities/{name}': {
      post: invocation(
        'invoke',
        'Invoke a capability: the body is its input',
        json(
          { type: 'object', description: 'As the schema of the capability has it.', additionalProperties: true },
          { prompt: 'Write.' },
        ),
      ),
    },
    '/capabilities/{name}/invoke': {
      post: invocation(
        'invokeWithOptions',
        'Invoke a capability with options',
        json(schemaRef('Invocation'), { input: { prompt: 'Write.' }, options: { timeout_seconds: 30 } }),
      ),
    },
    '/events/stream/{id}': {
      get: {
        operationId: 'followInvocation',
        summary: 'The stream of an invocation',
        description: 'From its start, or from behind `Last-Event-ID`. It stays open for 30 s behind the last event.',
        parameters: [
          {
            name: 'id',
            in: 'path',
            required: true,
            description: '`streamId` or `taskId` of the invocation.',
            schema: { type: 'string', format: 'uuid' },
          },
          parameterRef('LastEventIdHeader'),
          parameterRef('LastEventId'),
        ],
        responses: {
          '200': {
            description: 'The stream.',
            content: eventStream(
              schemaRef('CapabilityFrameData'),
              `retry: 3000\n\nevent: ${RESULT.type}\nid: ${RESULT.id}\ndata: ${JSON.stringify(RESULT)}\n\n`,
            ),
          },
          '204': { description: 'It has ended and the client has all of it.' },
          ...tokenRefusals(400, 404, 429),
        },
      },
    },
  },
  components: {
    schemas: {
      Invocation: INVOKED_SCHEMA,
      Started: object({
        streamId: { type: 'string', format: 'uuid' },
        taskId: { type: 'string', format: 'uuid' },
        streamUrl: text('Opens the stream, and only that, for as long as it is kept.', { format: 'uri' }),
        correlationId: { type: 'string' },
      }),
    },
    parameters: {
      CapabilityName: {
        name: 'name',
        in: 'path',
        required: true,
        description: 'Of a capability.',
        schema: { type: 'string' },
        example: 'write_text',
      },
      CorrelationId: {
        name: 'X-Correlation-ID',
        in: 'header',
        description: 'Comes back in the answer and in every frame; wins over `options.correlationId`.',
        schema: { type: 'string', minLength: 1, maxLength: 512 },
        example: 'req-789',
      },
    },
  },
};
