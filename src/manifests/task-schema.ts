import type { SchemaObject } from 'ajv';
import { runtime } from './agent-schema.ts';
import { block, jsonSchema, oneWord, seconds, text, texts } from './schema-parts.ts';

const DAY = 86_400;

/** What a task's manifest must look like. */
export const TASK_SCHEMA: SchemaObject = block({
  spec: block(
    {
      execution: block(
        {
          type: oneWord('deterministic', 'idempotent', 'transactional'),
          runtime: text(256),
          entrypoint: text(1_024),
          timeout_seconds: seconds(DAY),
        },
        ['type'],
      ),
      capabilities: texts('capabilities'),
      input: jsonSchema,
      output: jsonSchema,
      ...{ batch: true, dependencies: true, preconditions: true, postconditions: true },
      ...{ error_handling: true, observability: true },
    },
    ['execution'],
  ),
  runtime,
});
