import { type ApiPart, json, list, object, orNull, schemaRef, text } from '../../ops/openapi.ts';
import { apiTokenRefusals } from '../../ops/refusals.ts';

const tool = object({
  name: text('Short, where no other tool has that name.'),
  full_name: text('With its source in front.'),
  description: { type: 'string' },
  input_schema: { type: 'object', description: 'A JSON Schema.', additionalProperties: true },
  output_schema: orNull({ type: 'object', description: 'A JSON Schema.', additionalProperties: true }),
  source: object({ kind: { enum: ['mcp', 'http', 'module'] }, name: text('The server, or the file.') }),
  approval: { enum: ['never', 'always'], description: '`always`: somebody has to agree before each call.' },
  timeout_seconds: orNull({ type: 'number' }),
});

export const agentsApiPart: ApiPart = {
  tag: { name: 'agents', description: 'The agents API. Errors are `{error, code}`.' },
  paths: {
    '/api/tools': {
      get: {
        operationId: 'listTools',
        summary: 'The tools there are',
        description: 'Needs the scope `admin`.',
        responses: {
          '200': {
            description: 'All of them.',
            content: json(object({ tools: list(schemaRef('Tool')), total: { type: 'integer' } }), {
              tools: [
                {
                  name: 'lookup',
                  full_name: 'http.lookup',
                  description: 'Looks something up.',
                  input_schema: { type: 'object' },
                  output_schema: null,
                  source: { kind: 'http', name: 'lookup' },
                  approval: 'never',
                  timeout_seconds: 30,
                },
              ],
              total: 1,
            }),
          },
          ...apiTokenRefusals(),
        },
      },
    },
  },
  components: { schemas: { Tool: tool } },
};
