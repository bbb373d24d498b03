import { type ApiPart, json, list, object, type Schema, schemaRef, text } from './openapi.ts';
import { tokenRefusals } from './refusals.ts';

const ok: Schema = object({ status: { const: 'ok' } });

const time: Schema = { type: 'number', description: 'Milliseconds since 1970.' };

const store: Schema = object({
  up: { type: 'boolean', description: 'Commands are answered and the feed is open.' },
  'markAgeMs?': { type: 'number', description: 'Since the last mark came back on the feed; absent if none ever has.' },
  'lastError?': { type: 'string' },
});

const mcpServer: Schema = object({
  name: { type: 'string' },
  transport: { type: 'string' },
  state: { type: 'string' },
  since: time,
  tools: { type: 'integer', description: 'How many tools it is known to have.' },
  'lastError?': { type: 'string' },
  restarts: { type: 'integer' },
});

const modelBackend: Schema = object({
  backend: { type: 'string' },
  state: { enum: ['unknown', 'ok', 'failing'] },
  'lastOkAt?': time,
  'lastError?': object({ code: { type: 'string' }, message: { type: 'string' }, at: time }),
});

const readiness = (status: 'ready' | 'not_ready'): Schema =>
  object(
    {
      status: { const: status },
      'reasons?': list(text('One sentence.')),
      'store?': { ...list(store), description: 'By partition.' },
      'mcpServers?': list(mcpServer),
      'models?': list(modelBackend),
    },
    { description: 'All but `status` is shown to the scope `admin` only.' },
  );

const probe = (operationId: string, summary: string) => ({
  get: {
    operationId,
    summary,
    security: [],
    responses: { '200': { description: 'It is.', content: json(ok, { status: 'ok' }) } },
  },
});

/** For those who run the gateway. */
export const opsPart: ApiPart = {
  tag: { name: 'ops', description: 'For those who run the gateway.' },
  paths: {
    '/': {
      get: {
        operationId: 'about',
        summary: 'What this is',
        security: [],
        responses: {
          '200': {
            description: 'A gateway that runs.',
            content: json(object({ message: { type: 'string' }, version: { type: 'string' } }), {
              message: 'Sluice is running.',
              version: '0.1.0',
            }),
          },
        },
      },
    },
    '/health': probe('health', 'Whether the gateway answers'),
    '/livez': probe('alive', 'Whether the process is alive'),
    '/readyz': {
      get: {
        operationId: 'ready',
        summary: 'Whether the gateway should be given requests',
        description: 'A token that is bad counts as none here: a probe must not fail because of it.',
        security: [{}, { bearer: [] }],
        responses: {
          '200': { description: 'It should.', content: json(readiness('ready'), { status: 'ready' }) },
          '503': {
            description: 'It should not: it stops, or its store has been away for too long.',
            content: json(readiness('not_ready'), { status: 'not_ready' }),
          },
        },
      },
    },
    '/metrics': {
      get: {
        operationId: 'metrics',
        summary: 'Metrics for Prometheus',
        description: 'Needs the scope `admin`, unless `metrics.public` is set.',
        responses: {
          '200': {
            description: 'In the text format of Prometheus.',
            content: {
              'text/plain': {
                schema: { type: 'string' },
                example: '# TYPE sluice_connections gauge\nsluice_connections 3\n',
              },
            },
          },
          ...tokenRefusals(),
        },
      },
    },
    '/openapi.json': {
      get: {
        operationId: 'openapi',
        summary: 'This document',
        security: [],
        responses: {
          '200': {
            description: 'OpenAPI 3.1.',
            content: {
              'application/json': { schema: schemaRef('OpenApi') },
            },
          },
        },
      },
    },
  },
  components: {
    schemas: {
      OpenApi: {
        type: 'object',
        description: 'A document of OpenAPI 3.1.',
        required: ['openapi', 'info', 'servers', 'paths', 'components'],
        properties: { openapi: text('Its version.', { pattern: '^3\\.1\\.\\d+$' }), info: { type: 'object' } },
        additionalProperties: true,
      },
    },
  },
};
