import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { AgentSubscription, Catalogue } from '../../manifests/catalogue.ts';
import { hasWildcard } from '../../streams/channel-name.ts';
import type { Encoder } from '../../streams/entry.ts';
import type { Batch } from '../../streams/group.ts';
import type { Following, Hub } from '../../streams/hub.ts';
import type { StoredEvent } from '../../streams/log.ts';
import type { Sink } from '../../streams/sink.ts';
import { Problem } from '../problem.ts';
import { readStoredForm } from './event.ts';
import type { Invocations } from './invocations.ts';
import { RESERVED_PATTERNS } from './reserved.ts';

export interface SubscriptionsOptions {
  readonly hub: Hub;
  readonly invocations: Invocations;
  /** A sentence for the log. */
  readonly warn: (message: string) => void;
}

/** Nobody reads bytes here. */
const NOTHING: Encoder = { encode: () => Buffer.alloc(0) };
const DEFAULT_CONCURRENCY = 16;

const keyOf = ({ agent, channel, handler, filter, maxConcurrency }: AgentSubscription): string =>
  JSON.stringify([agent.name, channel, handler, filter?.expression, filter?.fields, maxConcurrency]);

/** What an event holds for those who handle it. */
const dataOf = ({ data }: StoredEvent): unknown => {
  const { type, payload } = readStoredForm(data);
  const parsed: unknown = JSON.parse(payload);
  return type === 'message' || type === 'capability_response' ? (parsed as { data: unknown }).data : parsed;
};

const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((part, name) => (part as Record<string, unknown> | null | undefined)?.[name], value);

const passes = ({ filter }: AgentSubscription, channel: string, data: unknown): boolean =>
  Object.entries(filter?.fields ?? {}).every(([path, wanted]) => isDeepStrictEqual(at(data, path), wanted)) &&
  (filter?.condition?.holds({ channel, data }) ?? true);

/** One subscription of an agent: every event that passes its filter starts its handler. */
class Handler implements Sink {
  private readonly subscription: AgentSubscription;
  private readonly options: SubscriptionsOptions;
  private readonly closing = new AbortController();
  private readonly following: Following;
  private readonly most: number;
  private readonly waiting: StoredEvent[] = [];
  private running = 0;

  constructor(subscription: AgentSubscription, options: SubscriptionsOptions) {
    this.subscription = subscription;
    this.options = options;
    this.most = subscription.maxConcurrency ?? DEFAULT_CONCURRENCY;
    const { channel } = subscription;
    const wanted = hasWildcard(channel) ? { names: [], patterns: [channel] } : { names: [channel] };
    this.following = options.hub.follow({ ...wanted, hidden: RESERVED_PATTERNS, encoder: NOTHING, sink: this });
  }

  connected(): void {}

  /** Events were lost: there is nobody to tell but the log. */
  resync({ reason, channels }: { readonly reason: string; readonly channels: readonly string[] }): void {
    const { agent, handler } = this.subscription;
    this.options.warn(`${agent.name}.${handler} may have missed events of ${channels.join(', ')} (${reason}).`);
  }

  room(): number {
    return this.most;
  }

  /** No more than it can do: the rest waits in the log. */
  events({ events }: Batch): boolean {
    this.waiting.push(...events);
    this.next();
    return this.waiting.length === 0;
  }

  close(): void {
    this.closing.abort();
    this.following.close();
  }

  private next(): void {
    while (this.running < this.most && !this.closing.signal.aborted) {
      const event = this.waiting.shift();
      if (!event) break;
      this.running++;
      let over = false;
      const finished = (): void => {
        if (over) return;
        over = true;
        this.running--;
        this.next();
        if (this.waiting.length === 0) this.following.resume();
      };
      this.handle(event, finished).catch((error: unknown) => {
        const { agent, handler } = this.subscription;
        this.options.warn(`${agent.name}.${handler} could not be started: ${(error as Error).message}`);
        finished();
      });
    }
  }

  private async handle(event: StoredEvent, finished: () => void): Promise<void> {
    const { agent, capability, handler } = this.subscription;
    const data = dataOf(event);
    if (!passes(this.subscription, event.channel, data)) return finished();
    const input = (typeof data === 'object' && data !== null && !Array.isArray(data) ? data : { data }) as Readonly<
      Record<string, unknown>
    >;
    const fault = capability.inputCheck?.fault(input);
    if (fault !== undefined) throw new Error(`an event of ${event.channel} does not fit its input: ${fault}`);
    // Every replica sees the event, and its number leads them all to one job.
    const key = `event ${event.channel} ${event.ms}-${event.seq} for ${agent.name}.${handler}`;
    const invocation = {
      ...{ agent, capability, input, finished },
      principal: agent.uri,
      idempotency: { key, fingerprint: 'event' },
    };
    for (;;) {
      try {
        await this.options.invocations.start(invocation);
        return;
      } catch (error) {
        if (!(error instanceof Problem) || !('Retry-After' in error.headers)) throw error;
        await sleep(Number(error.headers['Retry-After']) * 1_000, undefined, {
          signal: this.closing.signal,
          ref: false,
        });
      }
    }
  }
}

/** What manifests subscribe to. */
export class Subscriptions {
  private readonly options: SubscriptionsOptions;
  private handlers = new Map<string, Handler>();

  constructor(options: SubscriptionsOptions) {
    this.options = options;
  }

  /** What is the same goes on where it is. */
  use(catalogue: Catalogue): void {
    const before = this.handlers;
    this.handlers = new Map();
    for (const subscription of catalogue.subscriptions()) {
      const key = keyOf(subscription);
      if (this.handlers.has(key)) continue;
      this.handlers.set(key, before.get(key) ?? new Handler(subscription, this.options));
      before.delete(key);
    }
    for (const handler of before.values()) handler.close();
  }

  close(): void {
    for (const handler of this.handlers.values()) handler.close();
  }
}
