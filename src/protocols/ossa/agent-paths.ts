import { type ApiPart, json, list, object, orNull, type Schema, schemaRef, text } from '../../ops/openapi.ts';
import { tokenRefusals } from '../../ops/refusals.ts';
import { eventStream } from './events-paths.ts';

const words = orNull({ type: 'string' });
const jsonSchema: Schema = orNull({
  anyOf: [{ type: 'object', additionalProperties: true }, { type: 'boolean' }],
  description: 'A JSON Schema.',
});

const AGENT = {
  name: 'writer',
  uri: 'agent://default/writer',
  version: '1.0.0',
  description: null,
  role: 'You write.',
  endpoint: '/events',
  channels: ['content.published'],
  capabilities: [
    {
      name: 'write_text',
      qualifiedName: 'writer.write_text',
      description: 'Writes something.',
      inputSchema: { type: 'object' },
      outputSchema: null,
      scopes: [],
      timeoutSeconds: 60,
    },
  ],
  tools: [{ name: 'lookup', type: 'http', description: null }],
  model: null,
  access: null,
};

const REPORT = {
  type: 'status',
  id: 'status-01a1ee9f-3ba2-7000-8000-000004000000',
  timestamp: '2026-01-01T00:00:00.000Z',
  payload: { activeAgents: 1, queueDepth: 0, throughput: 12.5 },
  metadata: { agentId: 'agent://default/gateway' },
};

export const agentsPart: ApiPart = {
  tag: { name: 'catalogue', description: 'What manifests have declared, as far as the token may see it.' },
  paths: {
    '/agents': {
      get: {
        operationId: 'listAgents',
        summary: 'The agents that are loaded',
        responses: {
          '200': {
            description: 'All of them.',
            content: json(object({ agents: list(schemaRef('Agent')) }), { agents: [AGENT] }),
          },
          ...tokenRefusals(),
        },
      },
    },
    '/agent-status': {
      get: {
        operationId: 'followStatus',
        summary: 'How busy everything is, at once and every five seconds, over all replicas',
        responses: {
          '200': {
            description: 'The stream.',
            content: eventStream(
              schemaRef('StatusReport'),
              `retry: 3000\nevent: status\nid: ${REPORT.id}\ndata: ${JSON.stringify(REPORT)}\n\n`,
            ),
          },
          ...tokenRefusals(429),
        },
      },
    },
    '/agents/{name}': {
      get: {
        operationId: 'getAgent',
        summary: 'One agent',
        parameters: [
          {
            name: 'name',
            in: 'path',
            required: true,
            description: 'As its manifest has it.',
            schema: { type: 'string' },
            example: 'writer',
          },
        ],
        responses: {
          '200': { description: 'The agent.', content: json(schemaRef('Agent'), AGENT) },
          ...tokenRefusals(400, 404),
        },
      },
    },
    '/channels': {
      get: {
        operationId: 'listChannels',
        summary: 'Channels that are declared or in use',
        responses: {
          '200': {
            description: 'At most 500 of them, sorted by name.',
            content: json(object({ channels: list(schemaRef('Channel')) }), {
              channels: [
                {
                  name: 'content.published',
                  agents: ['agent://default/writer'],
                  lastId: 'msg-01a1edd3-f383-7000-8000-0000040ebe49',
                  events: 1,
                  subscribers: 0,
                },
              ],
            }),
          },
          ...tokenRefusals(),
        },
      },
    },
  },
  components: {
    schemas: {
      Agent: object({
        name: { type: 'string' },
        uri: text('What events name as `agentId`.'),
        version: words,
        description: words,
        role: words,
        endpoint: { ...words, description: 'Where its channels are followed; null if it has no stream.' },
        channels: { ...list(schemaRef('ChannelName')), description: 'Those that the token may see.' },
        capabilities: list(
          object({
            name: { type: 'string' },
            qualifiedName: text('With the agent in front.'),
            description: words,
            inputSchema: jsonSchema,
            outputSchema: jsonSchema,
            scopes: { ...list({ type: 'string' }), description: 'Needed beyond `capabilities`.' },
            timeoutSeconds: orNull({ type: 'number' }),
          }),
        ),
        tools: list(object({ name: words, type: words, description: words })),
        model: words,
        access: { ...words, description: 'The tier of its manifest.' },
      }),
      Channel: object({
        name: schemaRef('ChannelName'),
        agents: { ...list({ type: 'string' }), description: 'The URIs of those that declare it.' },
        lastId: orNull(schemaRef('EventId')),
        events: { type: 'integer', minimum: 0, description: 'How many are kept.' },
        subscribers: { type: 'integer', minimum: 0, description: 'How many follow it.' },
      }),
    },
  },
};
