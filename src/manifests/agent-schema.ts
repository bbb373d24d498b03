import type { SchemaObject } from 'ajv';
import {
  anything,
  block,
  jsonSchema,
  list,
  map,
  numberOrVariable,
  oneWord,
  ownBlock,
  prose,
  seconds,
  text,
  texts,
  whole,
  yesOrNo,
} from './schema-parts.ts';

const DAY = 86_400;

const CAPABILITY_NAME = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$';
const capabilityNameExpects =
  'a name of letters, digits, "_", "-" and ".", at most 128 characters, that does not begin with "-" or "."';
const capabilityName: SchemaObject = { type: 'string', pattern: CAPABILITY_NAME, expects: capabilityNameExpects };

const schemas = (names: readonly string[]): Record<string, SchemaObject> =>
  Object.fromEntries(names.map((name) => [name, jsonSchema]));

const timeouts = { timeout_seconds: seconds(DAY), timeoutSeconds: seconds(DAY) };

const scope: SchemaObject = { type: 'string', pattern: '^[^\\s"\\\\]{1,128}$', expects: 'a scope without spaces' };

const capabilityParts = {
  name: capabilityName,
  description: prose(),
  version: true,
  type: true,
  runtime: true,
  transport: true,
  retry_policy: true,
  scopes: list(scope, 'scopes'),
  ...timeouts,
  ...schemas(['input_schema', 'inputSchema', 'input', 'output_schema', 'outputSchema', 'output']),
} as const;

const capability: SchemaObject = {
  ...block(capabilityParts, ['name']),
  type: ['string', 'object'],
  pattern: CAPABILITY_NAME,
  expects: 'the name of a capability, or a capability with a name',
};

/** Of a map: the name is the key, and all else may be missing. */
const namedCapability: SchemaObject = {
  ...block(capabilityParts),
  type: ['object', 'string', 'null'],
  maxLength: 65_536,
  expects: 'a capability, its description, or nothing',
};

const capabilities: SchemaObject = {
  type: ['array', 'object'],
  items: capability,
  maxItems: 1_000,
  additionalProperties: namedCapability,
  propertyNames: { pattern: CAPABILITY_NAME, expects: capabilityNameExpects },
  maxProperties: 1_000,
  expects: 'a list of names or capabilities, or capabilities by name',
};

const llm = block(
  {
    provider: text(256),
    model: text(256),
    temperature: numberOrVariable('number', 0, 2),
    maxTokens: numberOrVariable('integer', 1, 100_000_000),
    max_tokens: numberOrVariable('integer', 1, 100_000_000),
    topP: true,
    top_p: true,
    profile: true,
    fallback_models: list(
      block(
        {
          provider: text(256),
          model: text(256),
          temperature: numberOrVariable('number', 0, 2),
          trigger: true,
          condition: true,
        },
        ['model'],
      ),
      'models',
      100,
    ),
    retry_config: true,
    cost_tracking: true,
    execution_profiles: true,
  },
  ['provider', 'model'],
);

const tool = block({
  type: text(64),
  name: text(256),
  description: prose(),
  capabilities: list(capability, 'capabilities'),
  server: true,
  source: true,
  endpoint: true,
  handler: true,
  config: true,
  auth: true,
  input: true,
  parameters: true,
  transport: true,
  namespace: true,
  version: true,
});

const messaging = block({
  publishes: list(
    block(
      {
        channel: text(1_024),
        schema: jsonSchema,
        description: prose(),
        examples: true,
        contentType: true,
        tags: true,
      },
      ['channel'],
    ),
    'channels with their schemas',
  ),
  subscribes: list(
    block(
      {
        channel: text(1_024),
        description: prose(),
        schema: jsonSchema,
        handler: capabilityName,
        filter: block({ expression: text(16_384), fields: anything }),
        priority: true,
        maxConcurrency: whole(1, 10_000),
      },
      ['channel'],
    ),
    'channels with their handlers',
  ),
  commands: list(
    block(
      {
        name: capabilityName,
        description: prose(),
        ...schemas(['inputSchema', 'input_schema', 'outputSchema', 'output_schema']),
        ...timeouts,
        idempotent: true,
        async: true,
      },
      ['name'],
    ),
    'commands',
  ),
  reliability: true,
  transport: true,
  queues: true,
  broker: true,
  mesh_endpoint: true,
});

const sse = ownBlock({
  enabled: yesOrNo,
  endpoint: text(1_024),
  channels: list(text(1_024), 'channels'),
  heartbeat: ownBlock({ interval: { ...seconds(3_600), minimum: 1, expects: 'a number of seconds from 1 to 3600' } }),
  reconnect: ownBlock({
    retry: { ...whole(0, 3_600_000), expects: 'a whole number of milliseconds from 0 to 3600000' },
  }),
  buffer: ownBlock({
    maxSize: whole(0, 1_000_000),
    expirySeconds: {
      type: 'number',
      minimum: 0,
      maximum: 31_536_000,
      expects: 'a number of seconds from 0 to 31536000',
    },
  }),
});

const spec = block({
  role: prose(),
  prompts: block({ system: block({ template: prose() }) }),
  llm,
  tools: list(tool, 'tools'),
  capabilities,
  functions: list(
    block(
      {
        name: { type: 'string', pattern: '^[A-Za-z_]\\w{0,127}$', expects: 'a name of letters, digits and "_"' },
        description: prose(),
        parameters: jsonSchema,
        returns: jsonSchema,
        strict: true,
      },
      ['name'],
    ),
    'functions',
  ),
  messaging,
  transport: block({ sse, streaming: true }),
  access: block(
    {
      tier: oneWord('tier_1_read', 'tier_2_write_limited', 'tier_3_write_elevated', 'tier_4_policy'),
      permissions: texts('permissions'),
      prohibited: texts('actions'),
      audit_level: text(64),
      requires_approval: yesOrNo,
      approval_chain: text(64),
      isolation: text(64),
    },
    ['tier'],
  ),
  safety: block({
    rate_limiting: block({
      enabled: yesOrNo,
      requests_per_minute: whole(1, 10_000_000),
      burst_limit: whole(1, 10_000_000),
    }),
    human_in_loop: block({ enabled: yesOrNo, triggers: texts('triggers') }),
    content_filtering: true,
    pii_detection: true,
    guardrails: true,
  }),
  constraints: block({
    performance: block({
      maxLatencySeconds: seconds(DAY),
      maxConcurrentRequests: whole(1, 1_000_000),
      timeoutSeconds: seconds(DAY),
    }),
    cost: true,
    resources: true,
    time: true,
  }),
  autonomy: block({
    level: text(64),
    approval_required: {
      type: ['boolean', 'array'],
      items: text(),
      expects: 'true, false or a list of actions',
    },
    allowed_actions: texts('actions'),
    blocked_actions: texts('actions'),
    escalation_policy: true,
  }),
  ...{ state: true, observability: true, identity: true, compliance: true, lifecycle: true, separation: true },
  ...{ delegation: true, type: true, taxonomy: true, streaming: true, accessTier: true, runtime: true },
});

/** Which tool stands behind a capability. */
export const runtime = block({
  type: true,
  transport: true,
  bindings: map(
    block({ handler: text(1_024), mcp_server: text(256), tool: text(256), config: anything }),
    'bindings by the name of the capability',
  ),
});

/** What an agent's manifest must look like where the gateway reads it. */
export const AGENT_SCHEMA: SchemaObject = block({ spec, runtime });
