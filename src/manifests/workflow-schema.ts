import type { SchemaObject } from 'ajv';
import { runtime } from './agent-schema.ts';
import { anything, block, jsonSchema, list, oneWord, seconds, text, texts, whole, yesOrNo } from './schema-parts.ts';

const DAY = 86_400;

/** The order in which steps are looked into. */
export const STEP_KINDS = ['Task', 'Agent', 'Parallel', 'Conditional', 'Loop'] as const;

const STEP_ID = '^[A-Za-z][A-Za-z0-9_-]{0,127}$';
const stepIdExpects = 'a step id: a letter, then letters, digits, "_" and "-"';
const stepId: SchemaObject = { type: 'string', pattern: STEP_ID, expects: stepIdExpects };

/** There is no grammar for them; what one means is found out when it is run. */
const expression = text(16_384, 'an expression as text');

const steps = list({ $ref: '#/definitions/step' }, 'steps');

const retry = block({
  max_attempts: whole(1, 10),
  backoff_strategy: text(64),
  initial_delay_ms: whole(0, 3_600_000),
  max_delay_ms: whole(0, 3_600_000),
  retryable_errors: texts('errors'),
});

const step = block(
  {
    id: stepId,
    name: text(256),
    description: true,
    kind: oneWord(...STEP_KINDS),
    ref: text(1_024),
    inline: anything,
    input: anything,
    output: block({ to: text(256), fields: true }),
    condition: expression,
    depends_on: list(stepId, 'step ids'),
    parallel: steps,
    branches: list(block({ condition: expression, steps }, ['condition', 'steps']), 'branches'),
    else: steps,
    loop: block(
      {
        over: { type: ['string', 'array'], expects: 'an expression or a list' },
        as: text(64),
        index: text(64),
        parallelism: whole(1, 1_000),
      },
      ['over'],
    ),
    steps,
    retry,
    timeout_seconds: seconds(DAY),
    continue_on_error: yesOrNo,
    on_error: block({ action: oneWord('fail', 'continue', 'goto', 'compensate'), goto: stepId, compensation: true }, [
      'action',
    ]),
    labels: true,
    annotations: true,
  },
  ['id'],
);

/** What a workflow's manifest must look like. */
export const WORKFLOW_SCHEMA: SchemaObject = {
  ...block({
    spec: block(
      {
        steps: { ...steps, minItems: 1, expects: 'a list of at least one step' },
        inputs: jsonSchema,
        outputs: jsonSchema,
        context: block({ variables: anything, secrets: true }),
        triggers: true,
        concurrency: true,
        timeout_seconds: seconds(DAY),
        error_handling: block({
          on_failure: oneWord('halt', 'continue', 'rollback', 'notify', 'compensate', 'compensation'),
          compensation_steps: steps,
          notification: true,
          retry_policy: true,
        }),
        observability: true,
      },
      ['steps'],
    ),
    runtime,
  }),
  definitions: { step },
};
