import type { SchemaCheck } from '../tools/schema-check.ts';
import { type Agent, channelsOf, type Subscription } from './agent.ts';
import type { Capability } from './capability.ts';
import { type Kind, keyOf } from './identity.ts';
import type { Manifest } from './manifest.ts';
import type { Task } from './task.ts';
import type { Reference, Workflow } from './workflow.ts';

/** What the manifests say of a channel, all of them together. What none says is left to the settings. */
export interface DeclaredChannel {
  readonly name: string;
  /** Those that declare it. */
  readonly agents: readonly Agent[];
  /** Each the largest that is declared: what one agent was promised is not thrown away because another needs less. */
  readonly limits: { readonly events?: number; readonly ageMs?: number };
  /** The smallest. */
  readonly heartbeatSeconds?: number;
  /** The smallest. */
  readonly retryMs?: number;
  /**
   * What is wrong with data, in one sentence. If the agent it comes from has a schema for the channel, that one decides;
   * otherwise the data must fit one of those that are declared.
   */
  payloadFault(data: unknown, agent?: string): string | undefined;
}

export interface Offered {
  readonly agent: Agent;
  readonly capability: Capability;
}

export type CapabilityLookup =
  | ({ readonly outcome: 'found' } & Offered)
  /** Under this name there are several; each is known by one of these. */
  | { readonly outcome: 'ambiguous'; readonly names: readonly string[] };

export interface AgentSubscription extends Subscription {
  readonly agent: Agent;
  readonly handler: string;
  readonly capability: Capability;
}

const extreme = (
  pick: (...values: number[]) => number,
  values: readonly (number | undefined)[],
): number | undefined => {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : pick(...known);
};

const declaredChannel = (name: string, agents: readonly Agent[]): DeclaredChannel => {
  // What a block says that is switched off counts for nothing.
  const blocks = agents.filter(({ sse }) => sse.enabled).map(({ sse }) => sse);
  const events = extreme(
    Math.max,
    blocks.map(({ buffer }) => buffer?.events),
  );
  const ageMs = extreme(
    Math.max,
    blocks.map(({ buffer }) => buffer?.ageMs),
  );
  const heartbeatSeconds = extreme(
    Math.min,
    blocks.map((block) => block.heartbeatSeconds),
  );
  const retryMs = extreme(
    Math.min,
    blocks.map((block) => block.retryMs),
  );
  const checks = new Map<string, SchemaCheck>();
  for (const { uri, publishes } of agents) {
    const check = publishes.find(({ channel }) => channel === name)?.check;
    if (check) checks.set(uri, check);
  }
  return Object.freeze({
    name,
    agents,
    limits: Object.freeze({ ...(events !== undefined && { events }), ...(ageMs !== undefined && { ageMs }) }),
    ...(heartbeatSeconds !== undefined && { heartbeatSeconds }),
    ...(retryMs !== undefined && { retryMs }),
    payloadFault(data: unknown, agent?: string): string | undefined {
      const own = agent === undefined ? undefined : checks.get(agent);
      const faults: string[] = [];
      for (const check of own ? [own] : checks.values()) {
        const fault = check.fault(data);
        if (fault === undefined) return undefined;
        faults.push(fault);
      }
      return faults[0];
    },
  });
};

const push = <T>(map: Map<string, T[]>, key: string, value: T): void => {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
};

/** All manifests at one moment. It never changes: whoever holds one sees one state, whatever is loaded meanwhile. */
export class Catalogue {
  private readonly manifests: ReadonlyMap<string, Manifest>;
  private readonly channels = new Map<string, DeclaredChannel>();
  private readonly byEndpoint = new Map<string, string[]>();
  private readonly byCapability = new Map<string, Offered[]>();
  private readonly byQualifiedName = new Map<string, Offered>();
  private readonly allSubscriptions: AgentSubscription[] = [];

  constructor(manifests: Iterable<Manifest>) {
    this.manifests = new Map([...manifests].map((manifest) => [keyOf(manifest), manifest]));
    const declaring = new Map<string, Agent[]>();
    for (const agent of this.agents()) {
      for (const channel of channelsOf(agent)) {
        push(declaring, channel, agent);
        if (agent.sse.enabled) push(this.byEndpoint, agent.sse.endpoint, channel);
      }
      if (agent.sse.enabled && !this.byEndpoint.has(agent.sse.endpoint)) this.byEndpoint.set(agent.sse.endpoint, []);
      for (const capability of agent.capabilities) {
        const offered = { agent, capability };
        push(this.byCapability, capability.name, offered);
        this.byQualifiedName.set(`${agent.name}.${capability.name}`, offered);
      }
      for (const subscription of agent.subscribes) {
        const capability = agent.capabilities.find(({ name }) => name === subscription.handler);
        if (capability) this.allSubscriptions.push({ ...subscription, handler: capability.name, capability, agent });
      }
    }
    for (const [name, agents] of declaring) this.channels.set(name, declaredChannel(name, Object.freeze(agents)));
  }

  agents(): readonly Agent[] {
    return this.all('Agent');
  }

  workflows(): readonly Workflow[] {
    return this.all('Workflow');
  }

  tasks(): readonly Task[] {
    return this.all('Task');
  }

  agent(name: string): Agent | undefined {
    return this.manifests.get(keyOf({ kind: 'Agent', name })) as Agent | undefined;
  }

  workflow(name: string): Workflow | undefined {
    return this.manifests.get(keyOf({ kind: 'Workflow', name })) as Workflow | undefined;
  }

  task(name: string): Task | undefined {
    return this.manifests.get(keyOf({ kind: 'Task', name })) as Task | undefined;
  }

  /** What a step's reference of a kind means; undefined if there is no such manifest, or none that can be known yet. */
  referred(reference: Reference, kind: Kind): Manifest | undefined {
    if (reference.by === 'name') return this.manifests.get(keyOf({ kind, name: reference.name }));
    if (reference.by === 'expression') return undefined;
    return this.all(kind).find(({ absolute }) => absolute === reference.absolute);
  }

  /** Undefined if no manifest declares it. */
  channel(name: string): DeclaredChannel | undefined {
    return this.channels.get(name);
  }

  /** The names of all declared channels. */
  channelNames(): readonly string[] {
    return [...this.channels.keys()];
  }

  /** Where the manifests want to be served. */
  endpoints(): readonly string[] {
    return [...this.byEndpoint.keys()];
  }

  hasEndpoint(path: string): boolean {
    return this.byEndpoint.has(path);
  }

  /** What an endpoint's manifests declare, each once. */
  channelsOf(endpoint: string): readonly string[] {
    return [...new Set(this.byEndpoint.get(endpoint))];
  }

  /**
   * By `agent.capability`, or by its name alone. The first goes before: an agent's name holds no dot, so there is always one
   * way to call each capability, also where the name of one is itself "a.b".
   */
  capability(name: string): CapabilityLookup | undefined {
    const qualified = this.byQualifiedName.get(name);
    if (qualified) return { outcome: 'found', ...qualified };
    const offered = this.byCapability.get(name) ?? [];
    const [first] = offered;
    if (!first) return undefined;
    if (offered.length === 1) return { outcome: 'found', ...first };
    return { outcome: 'ambiguous', names: offered.map(({ agent, capability }) => `${agent.name}.${capability.name}`) };
  }

  /** Those that start something. */
  subscriptions(): readonly AgentSubscription[] {
    return this.allSubscriptions;
  }

  private all<K extends Kind>(kind: K): readonly Extract<Manifest, { kind: K }>[] {
    return [...this.manifests.values()].filter(
      (manifest): manifest is Extract<Manifest, { kind: K }> => manifest.kind === kind,
    );
  }
}
