import { setMaxListeners } from 'node:events';
import { aborted } from '../jobs/aborted.ts';
import { messageOf } from './message-of.ts';
import { SchemaCheck } from './schema-check.ts';
import {
  type JsonObject,
  type Progress,
  type Tool,
  ToolError,
  type ToolErrorCode,
  type ToolProvider,
  type ToolResult,
} from './tool.ts';
import { Turns } from './turns.ts';

export interface ToolCall {
  readonly principal: string;
  readonly signal?: AbortSignal;
  readonly progress?: (update: Progress) => void;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Less than the tool's own limit. */
  readonly timeoutMs?: number;
}

/** What happened to a call, for metrics. */
export interface ToolObserver {
  /** `error`: the tool said so itself. */
  called(tool: string, outcome: 'ok' | 'error' | ToolErrorCode, seconds: number): void;
}

export interface RegistryOptions {
  readonly observe?: ToolObserver;
  /** A sentence for the log. */
  readonly warn?: (message: string) => void;
}

interface Known {
  readonly tool: Tool;
  /** `server.tool`: unique. */
  readonly fullName: string;
  readonly provider: ToolProvider;
  readonly turns: Turns;
  check?: SchemaCheck | Error;
}

/** The longest wait that a timer can do. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * All tools there are, whatever they come from. A tool is reached by its full name, `source.tool`, and by its bare one,
 * which goes to the first source that has it.
 */
export class ToolRegistry {
  private readonly options: RegistryOptions;
  private readonly providers: ToolProvider[] = [];
  private readonly providerTurns = new Map<ToolProvider, Turns>();
  private byFullName = new Map<string, Known>();
  private byName = new Map<string, Known>();
  private readonly warned = new Set<string>();
  private readonly listeners = new Set<() => void>();

  constructor(options: RegistryOptions = {}) {
    this.options = options;
  }

  /** Earlier sources win bare names. */
  add(provider: ToolProvider): void {
    this.providers.push(provider);
    this.providerTurns.set(provider, new Turns(provider.concurrency));
    provider.onChange(() => this.refresh());
    this.refresh();
  }

  /** Takes other sources in the place of some that there were, at once. */
  replace(kind: ToolProvider['source']['kind'], providers: readonly ToolProvider[]): void {
    const at = this.providers.findIndex(({ source }) => source.kind === kind);
    const kept = this.providers.filter(({ source }) => source.kind !== kind);
    for (const provider of this.providers) {
      if (provider.source.kind === kind && !providers.includes(provider)) this.providerTurns.delete(provider);
    }
    kept.splice(at < 0 ? kept.length : at, 0, ...providers);
    this.providers.splice(0, this.providers.length, ...kept);
    for (const provider of providers) {
      // One that stays keeps its line of calls, and has been listened to from its beginning.
      if (this.providerTurns.has(provider)) continue;
      this.providerTurns.set(provider, new Turns(provider.concurrency));
      provider.onChange(() => this.refresh());
    }
    this.refresh();
  }

  onChange(changed: () => void): void {
    this.listeners.add(changed);
  }

  /** Every tool once, in the order of their sources; `name` is the one by which it is reached. */
  list(): readonly { readonly name: string; readonly fullName: string; readonly tool: Tool }[] {
    return [...this.byFullName.values()].map(({ tool, fullName }) => ({
      name: this.byName.get(tool.name)?.fullName === fullName ? tool.name : fullName,
      fullName,
      tool,
    }));
  }

  find(name: string): Tool | undefined {
    return this.known(name)?.tool;
  }

  /** Calls a tool, once. Throws a `ToolError`. */
  async call(name: string, input: unknown, call: ToolCall): Promise<ToolResult> {
    const known = this.known(name);
    if (!known) throw new ToolError('not_found', `There is no tool "${name.slice(0, 200)}".`);
    const begin = performance.now();
    const seconds = (): number => (performance.now() - begin) / 1_000;
    try {
      const result = await this.run(known, input, call);
      this.options.observe?.called(known.fullName, result.isError ? 'error' : 'ok', seconds());
      return result;
    } catch (error) {
      const known_ = error instanceof ToolError ? error : failure(error);
      this.options.observe?.called(known.fullName, known_.code, seconds());
      throw known_;
    }
  }

  private known(name: string): Known | undefined {
    return this.byFullName.get(name) ?? this.byName.get(name);
  }

  private async run(known: Known, input: unknown, call: ToolCall): Promise<ToolResult> {
    const { tool } = known;
    const fault = checkOf(known).fault(input);
    if (fault !== undefined) throw new ToolError('invalid_input', `Input of ${tool.name}: ${fault}`);
    const limits = [tool.timeoutMs, call.timeoutMs ?? 0].filter((ms) => ms > 0);
    const limit = limits.length > 0 ? Math.min(...limits, MAX_TIMER_MS) : 0;
    // Not AbortSignal.timeout and any: their timers and listeners would outlive a short call by far.
    const stop = new AbortController();
    const late = new ToolError('timeout', `${tool.name} took longer than ${limit / 1_000} s.`);
    const timer = limit > 0 ? setTimeout(() => stop.abort(late), limit) : undefined;
    const cancel = (): void => {
      stop.abort(new ToolError('cancelled', `The call of ${tool.name} was cancelled.`, call.signal?.reason));
    };
    if (call.signal?.aborted) cancel();
    else if (call.signal) {
      setMaxListeners(0, call.signal); // one signal may well stop a hundred calls
      call.signal.addEventListener('abort', cancel, { once: true });
    }
    const ends: (() => void)[] = [];
    try {
      // Waiting counts: who asks with a time limit wants an answer by then.
      ends.push(await known.turns.take(stop.signal));
      ends.push(await (this.providerTurns.get(known.provider) as Turns).take(stop.signal));
      return await Promise.race([this.invoke(known, input as JsonObject, call, stop.signal), aborted(stop.signal)]);
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', cancel);
      for (const end of ends) end();
    }
  }

  private async invoke({ tool }: Known, input: JsonObject, call: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    const { principal, progress = () => {}, secrets = {} } = call;
    try {
      return await tool.call(input, {
        signal,
        principal,
        secrets,
        progress: (update) => {
          if (!signal.aborted) progress(update);
        },
      });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw error;
    }
  }

  private refresh(): void {
    const before = this.byFullName;
    const full = new Map<string, Known>();
    const bare = new Map<string, Known>();
    for (const provider of this.providers) {
      for (const tool of provider.tools()) {
        const fullName = `${provider.source.name}.${tool.name}`;
        const known = before.get(fullName);
        // The line of those who wait stays, and the check is made once, as long as it is the same tool.
        const same = known?.tool.inputSchema === tool.inputSchema && known.tool.concurrency === tool.concurrency;
        const entry: Known = same
          ? { ...known, tool, provider }
          : { tool, fullName, provider, turns: new Turns(tool.concurrency) };
        full.set(fullName, entry);
        const first = bare.get(tool.name);
        if (first) this.warnOf(tool.name, first, entry);
        else bare.set(tool.name, entry);
      }
    }
    this.byFullName = full;
    this.byName = bare;
    for (const changed of this.listeners) changed();
  }

  private warnOf(name: string, first: Known, second: Known): void {
    const message = `Two tools are called "${name}": it means ${first.fullName}; the other is ${second.fullName}.`;
    if (this.warned.has(message)) return;
    this.warned.add(message);
    this.options.warn?.(message);
  }
}

/** Made at the first call: some servers offer hundreds of tools that nobody ever calls. */
const checkOf = (known: Known): SchemaCheck => {
  if (!known.check) {
    try {
      known.check = new SchemaCheck(known.tool.inputSchema);
    } catch (error) {
      known.check = error as Error;
    }
  }
  if (known.check instanceof Error) throw new ToolError('failed', `${known.tool.name}: ${known.check.message}`);
  return known.check;
};

const failure = (error: unknown): ToolError => new ToolError('failed', messageOf(error), error);
