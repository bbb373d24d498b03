import { didYouMean } from '../config/suggestion.ts';
import { hasWildcard, isChannelName, isChannelPattern } from '../streams/channel-name.ts';
import type {
  Access,
  Agent,
  AgentTool,
  Approval,
  Llm,
  Publication,
  RateLimit,
  SseBlock,
  Subscription,
} from './agent.ts';
import { bindingsOf, type Capability, checkOf, readCapabilities } from './capability.ts';
import { Expression } from './expression.ts';
import { shown } from './finding.ts';
import type { Identity } from './identity.ts';
import type { ManifestDocument } from './manifest-document.ts';
import { given, isObject, listOf, numberOf, objectOf, oneOf, type PlainObject, textOf, textsOf } from './plain.ts';
import { pathOf, within } from './pointer.ts';
import { EVENTS, endpointFault, isReservedChannel, type Reserved } from './reserved.ts';

const SSE = '/spec/transport/sse';
const NAME_RULE = 'letters, digits, "_" and "-" in segments with dots between them, at most 255 characters';

const numberOrText = (value: unknown): number | string | undefined => numberOf(value) ?? textOf(value);

/**
 * Reads an agent out of a document, and reports what a schema cannot say. The document may be wrong in any way: what is not
 * there is passed over, since the schema has reported it already.
 */
class AgentReader {
  private readonly document: ManifestDocument;
  private readonly spec: PlainObject;
  private readonly reserved: Reserved;

  constructor(document: ManifestDocument, reserved: Reserved) {
    this.document = document;
    this.spec = objectOf(objectOf(document.value).spec);
    this.reserved = reserved;
  }

  agent(identity: Identity): Agent {
    const { role, prompts, safety, constraints } = this.spec;
    const template = textOf(objectOf(objectOf(prompts).system).template);
    const { maxConcurrentRequests, maxLatencySeconds, timeoutSeconds } = objectOf(objectOf(constraints).performance);
    const capabilities = this.capabilities();
    this.elsewhere();
    return {
      ...identity,
      kind: 'Agent',
      ...given({
        ...{ role: textOf(role), instructions: template ?? textOf(role), llm: this.llm() },
        ...{ sse: this.sse(), publishes: this.publishes(), subscribes: this.subscribes(capabilities) },
        ...{ capabilities, tools: this.tools(), mcpServers: this.mcpServers(identity.name) },
        ...{ access: this.access(), approval: this.approval() },
        rateLimit: rateLimitOf(objectOf(safety).rate_limiting),
        maxConcurrentRequests: numberOf(maxConcurrentRequests),
        maxLatencySeconds: numberOf(maxLatencySeconds),
        timeoutSeconds: numberOf(timeoutSeconds),
      }),
    };
  }

  private capabilities(): Capability[] {
    const bindings = bindingsOf(objectOf(this.document.value).runtime);
    const capabilities = readCapabilities(this.spec, bindings, this.document);
    const names = capabilities.map(({ name }) => name);
    for (const name of bindings.keys()) {
      if (names.includes(name)) continue;
      const message = `runtime.bindings names ${name}, which is no capability of this agent${didYouMean(name, names) || '.'}`;
      this.document.warning(within('/runtime/bindings', name), message, true);
    }
    return capabilities;
  }

  /** What others write in other places: told, not guessed. */
  private elsewhere(): void {
    const { streaming, transport, accessTier, runtime } = this.spec;
    const said = (pointer: string, instead: string): void =>
      this.document.warning(pointer, `${pathOf(pointer)} is not read: write ${instead}.`, true);
    if (isObject(streaming) && Object.hasOwn(streaming, 'sse')) said('/spec/streaming/sse', 'spec.transport.sse');
    if (Object.hasOwn(objectOf(transport), 'streaming')) said('/spec/transport/streaming', 'spec.transport.sse');
    if (accessTier !== undefined) said('/spec/accessTier', 'spec.access.tier');
    if (Object.hasOwn(objectOf(runtime), 'bindings')) said('/spec/runtime/bindings', 'runtime.bindings beside spec');
  }

  private llm(): Llm | undefined {
    const { llm } = this.spec;
    if (!isObject(llm)) return undefined;
    return given({
      ...{ provider: textOf(llm.provider) ?? '', model: textOf(llm.model) ?? '' },
      temperature: numberOrText(llm.temperature),
      maxTokens: numberOrText(oneOf(llm, ['maxTokens', 'max_tokens'])),
      fallbackModels: listOf(llm.fallback_models).map((fallback) => {
        const { provider, model, temperature } = objectOf(fallback);
        return given({
          ...{ provider: textOf(provider), model: textOf(model) ?? '', temperature: numberOrText(temperature) },
        });
      }),
    });
  }

  private sse(): SseBlock {
    const { sse } = objectOf(this.spec.transport);
    const { enabled, endpoint, channels, heartbeat, reconnect, buffer } = objectOf(sse);
    if (typeof endpoint === 'string') {
      const fault = endpointFault(endpoint, this.reserved);
      if (fault !== undefined) {
        this.document.error(within(SSE, 'endpoint'), `spec.transport.sse.endpoint ${fault}; it is ${shown(endpoint)}.`);
      }
    }
    const names = textsOf(channels);
    for (const [i, channel] of listOf(channels).entries()) {
      const pointer = within(SSE, 'channels', i);
      if (typeof channel === 'string') this.channel(channel, pointer);
      if (typeof channel === 'string' && names.indexOf(channel) < i) {
        this.document.warning(pointer, `The channel ${shown(channel)} stands in the list twice.`);
      }
    }
    const { maxSize, expirySeconds } = objectOf(buffer);
    const age = numberOf(expirySeconds);
    return given({
      enabled: isObject(sse) && enabled !== false,
      endpoint: textOf(endpoint) ?? EVENTS,
      channels: [...new Set(names)],
      heartbeatSeconds: numberOf(objectOf(heartbeat).interval),
      retryMs: numberOf(objectOf(reconnect).retry),
      buffer: isObject(buffer)
        ? given({ events: numberOf(maxSize), ageMs: age === undefined ? undefined : Math.round(age * 1_000) })
        : undefined,
    });
  }

  /** A channel that is declared. */
  private channel(channel: string, pointer: string): void {
    if (isReservedChannel(channel, this.reserved)) {
      this.document.error(pointer, `The channel ${shown(channel)} is reserved: only the gateway itself writes to it.`);
    } else if (!isChannelName(channel)) {
      const hint =
        hasWildcard(channel) && isChannelPattern(channel) ? 'A pattern declares no channel' : 'That is no channel name';
      this.document.error(pointer, `${hint}: ${shown(channel)}; a name is ${NAME_RULE}.`);
    }
  }

  private publishes(): Publication[] {
    const seen = new Map<string, string>();
    return listOf(objectOf(this.spec.messaging).publishes).flatMap((publication, i) => {
      const pointer = within('/spec/messaging/publishes', i);
      const { channel, schema, description } = objectOf(publication);
      if (typeof channel !== 'string') return [];
      this.channel(channel, within(pointer, 'channel'));
      const before = seen.get(channel);
      if (before !== undefined) {
        const { line } = this.document.place(before);
        const message = `The channel ${shown(channel)} is published twice; the first time in line ${line}.`;
        this.document.error(within(pointer, 'channel'), message);
      }
      seen.set(channel, within(pointer, 'channel'));
      return [
        given({
          ...{ channel, description: textOf(description), schema: isObject(schema) ? schema : undefined },
          check: checkOf(schema, within(pointer, 'schema'), this.document),
        }),
      ];
    });
  }

  private subscribes(capabilities: readonly Capability[]): Subscription[] {
    const names = capabilities.map(({ name }) => name);
    return listOf(objectOf(this.spec.messaging).subscribes).flatMap((subscription, i) => {
      const pointer = within('/spec/messaging/subscribes', i);
      const { channel, handler, filter, maxConcurrency } = objectOf(subscription);
      if (typeof channel !== 'string') return [];
      this.followed(channel, within(pointer, 'channel'));
      if (typeof handler === 'string' && !names.includes(handler)) {
        const message = `The handler ${handler} is no capability of this agent${didYouMean(handler, names) || '.'}`;
        this.document.error(within(pointer, 'handler'), message);
      } else if (handler === undefined) {
        this.document.warning(pointer, `Nothing is started for ${shown(channel)}: the subscription has no handler.`);
      }
      const { expression, fields } = objectOf(filter);
      const condition = this.condition(textOf(expression), within(pointer, 'filter', 'expression'));
      return [
        given({
          ...{ channel, handler: textOf(handler), maxConcurrency: numberOf(maxConcurrency) },
          filter: isObject(filter)
            ? given({ expression: textOf(expression), condition, fields: isObject(fields) ? fields : undefined })
            : undefined,
        }),
      ];
    });
  }

  private condition(text: string | undefined, pointer: string): Expression | undefined {
    if (text === undefined) return undefined;
    try {
      return new Expression(text);
    } catch (error) {
      this.document.error(pointer, (error as Error).message);
      return undefined;
    }
  }

  private followed(channel: string, pointer: string): void {
    if (isReservedChannel(channel, this.reserved)) {
      const message = `The channel ${shown(channel)} is reserved: its events belong to whoever caused them.`;
      this.document.error(pointer, message);
    } else if (!isChannelPattern(channel)) {
      const message = `That is no channel name or pattern: ${shown(channel)}; a name is ${NAME_RULE}, in a pattern "*" is one segment and "#", only last, the rest.`;
      this.document.error(pointer, message);
    }
  }

  private mcpServers(agent: string): Agent['mcpServers'] {
    const servers = listOf(this.spec.tools).flatMap((tool) => {
      const entry = mcpServerOf(objectOf(tool));
      return entry ? [{ name: textOf(objectOf(tool).name) ?? agent, entry }] : [];
    });
    return () => servers;
  }

  private tools(): AgentTool[] {
    return listOf(this.spec.tools).map((tool) => {
      const { name, type, description, capabilities } = objectOf(tool);
      return given({
        ...{ name: textOf(name), type: textOf(type), description: textOf(description) },
        source: sourceOf(objectOf(tool)),
        capabilities: listOf(capabilities).flatMap((one) => textOf(one) ?? textOf(objectOf(one).name) ?? []),
      });
    });
  }

  private access(): Access | undefined {
    const { access } = this.spec;
    if (!isObject(access)) return undefined;
    return given({
      tier: textOf(access.tier) ?? '',
      permissions: textsOf(access.permissions),
      prohibited: textsOf(access.prohibited),
      auditLevel: textOf(access.audit_level),
      isolation: textOf(access.isolation),
    });
  }

  private approval(): Approval {
    const { access, autonomy, safety } = this.spec;
    const { approval_required: required } = objectOf(autonomy);
    const { enabled, triggers } = objectOf(objectOf(safety).human_in_loop);
    return given({
      always: objectOf(access).requires_approval === true || required === true,
      actions: textsOf(required),
      chain: textOf(objectOf(access).approval_chain),
      triggers: enabled === false ? [] : textsOf(triggers),
    });
  }
}

const rateLimitOf = (limit: unknown): RateLimit | undefined => {
  if (!isObject(limit) || limit.enabled === false) return undefined;
  return given({ requestsPerMinute: numberOf(limit.requests_per_minute), burst: numberOf(limit.burst_limit) });
};

/** Without user, password and query: an address may carry the key to what is behind it. */
const withoutCredentials = (address: string): string =>
  address.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1').replace(/[?#].*$/s, '');

const sourceOf = (tool: PlainObject): string | undefined => {
  for (const name of ['server', 'endpoint', 'source', 'handler'] as const) {
    const value = tool[name];
    const { name: named, url, uri } = objectOf(value);
    const text = textOf(value) ?? textOf(named) ?? textOf(url) ?? textOf(uri);
    if (text !== undefined) return withoutCredentials(text);
  }
  return undefined;
};

const SERVER_FIELDS = ['command', 'args', 'env', 'cwd', 'url', 'headers', 'timeoutSeconds', 'approval'] as const;

/** What starts or reaches an MCP server, beside the tool's name or under `config` or `server`. */
const mcpServerOf = (tool: PlainObject): PlainObject | undefined => {
  if (tool.type !== 'mcp') return undefined;
  for (const written of [tool, objectOf(tool.config), objectOf(tool.server)]) {
    const url = textOf(written.url) ?? (/^https?:/.test(textOf(written.endpoint) ?? '') ? written.endpoint : undefined);
    if (textOf(written.command) === undefined && url === undefined) continue;
    const fields = SERVER_FIELDS.flatMap((name) =>
      written[name] === undefined ? [] : [[name, written[name]] as const],
    );
    const { transport } = written;
    return given({ ...Object.fromEntries(fields), url, type: textOf(transport) });
  }
  return undefined;
};

export const readAgent = (document: ManifestDocument, identity: Identity, reserved: Reserved): Agent =>
  new AgentReader(document, reserved).agent(identity);
