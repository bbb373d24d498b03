import type { SchemaCheck } from '../tools/schema-check.ts';
import type { Schema } from '../tools/tool.ts';
import type { Capability } from './capability.ts';
import type { Expression } from './expression.ts';
import type { Identity } from './identity.ts';
import type { PlainObject } from './plain.ts';

/** A model as it is written: variables of the environment are still in it. `modelOf` puts them in. */
export interface Llm {
  readonly provider: string;
  readonly model: string;
  readonly temperature?: number | string;
  readonly maxTokens?: number | string;
  readonly fallbackModels: readonly FallbackModel[];
}

export interface FallbackModel {
  readonly provider?: string;
  readonly model: string;
  readonly temperature?: number | string;
}

export interface Buffer {
  readonly events?: number;
  readonly ageMs?: number;
}

/** How an agent's events are served. What is not there is left to the settings. */
export interface SseBlock {
  readonly enabled: boolean;
  readonly endpoint: string;
  readonly channels: readonly string[];
  readonly heartbeatSeconds?: number;
  readonly retryMs?: number;
  readonly buffer?: Buffer;
}

export interface Publication {
  readonly channel: string;
  readonly description?: string;
  readonly schema?: Schema;
  readonly check?: SchemaCheck;
}

export interface Subscription {
  /** A name or a pattern. */
  readonly channel: string;
  /** The capability that each event starts. */
  readonly handler?: string;
  /** `condition` is the expression, ready to be asked: over `channel` and `data`. */
  readonly filter?: { readonly expression?: string; readonly condition?: Expression; readonly fields?: PlainObject };
  readonly maxConcurrency?: number;
}

/** A tool as it may be shown: never with what it is opened with. */
export interface AgentTool {
  readonly name?: string;
  readonly type?: string;
  readonly description?: string;
  /** The server, address or file behind it. */
  readonly source?: string;
  readonly capabilities: readonly string[];
}

export interface Access {
  readonly tier: string;
  readonly permissions: readonly string[];
  readonly prohibited: readonly string[];
  readonly auditLevel?: string;
  readonly isolation?: string;
}

/** Who has to agree before something is done. */
export interface Approval {
  /** Everything needs it. */
  readonly always: boolean;
  /** These actions need it. */
  readonly actions: readonly string[];
  readonly chain?: string;
  readonly triggers: readonly string[];
}

export interface RateLimit {
  readonly requestsPerMinute?: number;
  readonly burst?: number;
}

export interface Agent extends Identity {
  readonly kind: 'Agent';
  readonly role?: string;
  /** What its model is told first: the system prompt, else the role. */
  readonly instructions?: string;
  readonly llm?: Llm;
  readonly sse: SseBlock;
  readonly publishes: readonly Publication[];
  readonly subscribes: readonly Subscription[];
  readonly capabilities: readonly Capability[];
  readonly tools: readonly AgentTool[];
  /** MCP servers that it brings along, as entries of the file of servers read. Asked for, so that nobody prints its secrets. */
  readonly mcpServers: () => readonly { readonly name: string; readonly entry: PlainObject }[];
  readonly access?: Access;
  readonly approval: Approval;
  readonly rateLimit?: RateLimit;
  readonly maxConcurrentRequests?: number;
  readonly maxLatencySeconds?: number;
  readonly timeoutSeconds?: number;
}

/** The channels an agent declares: those it serves and those it publishes to, each once. */
export const channelsOf = ({ sse, publishes }: Agent): readonly string[] => [
  ...new Set([...sse.channels, ...publishes.map(({ channel }) => channel)]),
];
