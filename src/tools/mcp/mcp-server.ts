import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  type JsonObject,
  type Tool,
  type ToolContext,
  ToolError,
  type ToolProvider,
  type ToolResult,
} from '../tool.ts';
import type { McpServerConfig, McpTransport } from './config.ts';
import { Connection } from './connection.ts';
import { SessionGone } from './failure.ts';
import type { ListedTool, Listing } from './listing.ts';
import { Restart, type RestartTimes } from './restart.ts';
import { concealing } from './secrets.ts';

/**
 * `starting`    it has not been ready yet
 * `ready`       it is connected and has listed its tools
 * `restarting`  it was ready and was lost; it is being started again
 * `failed`      the last attempt to start it failed; there will be another, unless it is to live once
 * `stopped`     it was told to end
 */
export type McpServerPhase = 'starting' | 'ready' | 'restarting' | 'failed' | 'stopped';

/** What can be seen of a server from outside. */
export interface McpServerState {
  readonly name: string;
  readonly transport: McpTransport;
  readonly state: McpServerPhase;
  /** When this state began, in ms since 1970. */
  readonly since: number;
  /** How many tools it is known to have; they stay known while it is away. */
  readonly tools: number;
  /** The last thing that went wrong, while it matters. */
  readonly lastError: string | undefined;
  /** How often it has been started again. */
  readonly restarts: number;
}

export interface McpServerOptions {
  readonly version: string;
  readonly setpriv: Promise<string | undefined>;
  readonly refreshMs: number;
  readonly startMs: number;
  readonly answerMs: number;
  /** How long a call waits for a server that is not ready. */
  readonly readyMs: number;
  /** The time limit of calls where the server's configuration has none. */
  readonly callMs: number;
  readonly maxResultBytes: number;
  readonly restart: RestartTimes;
  /** It is started once and never again: whoever works with it relies on what it remembers. */
  readonly once?: boolean;
  readonly onState?: (state: McpServerState) => void;
  /** A line that a server wrote to its standard error, or sent as a message for the log. */
  readonly note?: (server: string, line: string) => void;
  /** A sentence for the log. */
  readonly warn?: (message: string) => void;
}

/** An MCP server as a source of tools: connected in the background, and again whenever the connection is lost. */
export class McpServer implements ToolProvider {
  readonly config: McpServerConfig;
  readonly source: ToolProvider['source'];
  readonly concurrency: number;
  private readonly options: McpServerOptions;
  private readonly conceal: (text: string) => string;
  private readonly stopping = new AbortController();
  private readonly listeners = new Set<() => void>();
  private readonly running: Promise<void>;
  private readonly warned = new Set<string>();
  private waiting: (() => void)[] = [];
  private connection: Connection | undefined;
  private known: readonly Tool[] = [];
  private listed = new Map<string, ListedTool>();
  private phase: McpServerPhase = 'starting';
  private since = Date.now();
  private lastError: string | undefined;
  /** What is wrong although it is connected. */
  private trouble: string | undefined;
  private restarts = 0;
  /** It lives once, and that is over. */
  private spent = false;

  /** `after`: what has to be over before it may start. */
  constructor(config: McpServerConfig, options: McpServerOptions, after: Promise<void> = Promise.resolve()) {
    this.config = config;
    this.options = options;
    this.source = { kind: 'mcp', name: config.name };
    this.concurrency = config.concurrency;
    this.conceal = concealing(config.secrets);
    this.running = after.then(() => this.run());
  }

  get state(): McpServerState {
    const { phase: state, since, lastError, restarts } = this;
    const { name, transport } = this.config;
    return { name, transport, state, since, tools: this.known.length, lastError, restarts };
  }

  /** Whether a call would reach it now. */
  get usable(): boolean {
    return this.phase === 'ready' && this.connection?.usable === true;
  }

  tools(): readonly Tool[] {
    return this.known;
  }

  onChange(changed: () => void): void {
    this.listeners.add(changed);
  }

  /** Resolves when the first attempt to start it is over, however it ended. */
  async settled(signal: AbortSignal): Promise<void> {
    while (this.phase === 'starting' && !signal.aborted) await this.change(signal);
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await this.connection?.close();
    await this.running;
  }

  private async run(): Promise<void> {
    const { restart: times, once = false } = this.options;
    const restart = new Restart(times);
    const { signal } = this.stopping;
    while (!signal.aborted) {
      let readyAt = 0;
      let expected = false;
      this.trouble = undefined;
      try {
        this.connection = await this.connect();
        readyAt = performance.now();
        this.enter('ready', this.trouble);
        const ending = await this.connection.lost;
        expected = ending.expected;
        this.spent = once;
        if (!signal.aborted) this.enter(once ? 'failed' : 'restarting', ending.reason);
        await this.connection.close();
      } catch (error) {
        this.spent = once;
        if (!signal.aborted) this.enter('failed', (error as Error).message);
      }
      this.connection = undefined;
      if (signal.aborted) break;
      if (once) return;
      const lived = readyAt > 0 ? performance.now() - readyAt : 0;
      await sleep(restart.delayAfter(lived, expected), undefined, { signal, ref: false }).catch(() => {});
      this.restarts++;
    }
    this.enter('stopped');
  }

  private async connect(): Promise<Connection> {
    const { options, conceal } = this;
    const { name } = this.config;
    const setpriv = await options.setpriv;
    return Connection.open(
      this.config,
      { ...options, setpriv, conceal },
      {
        tools: (listing) => this.take(listing),
        trouble: (problem) => this.setTrouble(problem),
        note: (line) => options.note?.(name, line),
        warn: (message) => this.warnOnce(message),
      },
      this.stopping.signal,
    );
  }

  private async call(tool: string, input: JsonObject, context: ToolContext): Promise<ToolResult> {
    for (let again = false; ; again = true) {
      const connection = await this.ready(context.signal);
      try {
        return await connection.call(tool, input, context);
      } catch (error) {
        if (!(error instanceof SessionGone)) throw error;
        // The server has refused the call because it does not know the session: it was not carried out, and may be made
        // in a new one. Nothing else is ever made twice.
        if (again) throw this.unavailable('its session was over');
      }
    }
  }

  /** The connection, once it is there; calls that come while it is away wait a little. */
  private async ready(signal: AbortSignal): Promise<Connection> {
    if (this.connection && this.usable) return this.connection;
    const late = AbortSignal.timeout(this.options.readyMs);
    const given = AbortSignal.any([late, signal]);
    while (!this.connection?.usable || this.phase !== 'ready') {
      if (signal.aborted) throw signal.reason;
      if (this.stopping.signal.aborted) throw this.unavailable('it was stopped');
      if (this.spent) throw this.unavailable(this.lastError ?? 'it has ended');
      if (late.aborted) throw this.unavailable(this.lastError ?? 'it has not started yet');
      await this.change(given);
    }
    return this.connection;
  }

  private unavailable(reason: string): ToolError {
    const stop = /[.!?]$/.test(reason) ? '' : '.';
    return new ToolError(
      'unavailable',
      `The MCP server ${this.config.name} is not available: ${reason}${stop} The call was not made.`,
    );
  }

  /** Resolves when the state has changed, or at the signal. */
  private change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const woken = (): void => {
        signal.removeEventListener('abort', woken);
        this.waiting = this.waiting.filter((other) => other !== woken);
        resolve();
      };
      this.waiting.push(woken);
      signal.addEventListener('abort', woken, { once: true });
      if (signal.aborted) woken();
    });
  }

  private enter(phase: McpServerPhase, error?: string): void {
    this.phase = phase;
    this.since = Date.now();
    this.lastError = error;
    this.tell();
  }

  private setTrouble(problem: string | undefined): void {
    if (this.trouble === problem) return;
    this.trouble = problem;
    if (this.phase !== 'ready') return;
    this.lastError = problem;
    this.tell();
  }

  private tell(): void {
    this.options.onState?.(this.state);
    for (const woken of this.waiting) woken();
  }

  private take({ tools, warnings }: Listing): void {
    for (const warning of warnings) this.warnOnce(warning);
    const allowed = this.config.tools;
    const wanted = allowed ? tools.filter(({ name }) => allowed.includes(name)) : tools;
    for (const name of allowed ?? []) {
      if (!tools.some((tool) => tool.name === name))
        this.warnOnce(`has no tool "${name}", which its list of tools names`);
    }
    const before = new Map(this.known.map((tool) => [tool.name, tool]));
    // The same object as long as it is the same tool: its compiled schema and its line of waiting calls hang on it.
    const next = wanted.map((tool) => {
      const same = before.get(tool.name);
      return same && isDeepStrictEqual(this.listed.get(tool.name), tool) ? same : this.make(tool);
    });
    const changed = next.length !== this.known.length || next.some((tool, i) => tool !== this.known[i]);
    this.known = next;
    this.listed = new Map(wanted.map((tool) => [tool.name, tool]));
    this.setTrouble(undefined);
    if (!changed) return;
    for (const listener of this.listeners) listener();
    if (this.phase === 'ready') this.tell();
  }

  private make(tool: ListedTool): Tool {
    const { timeoutMs = this.options.callMs, approval } = this.config;
    const call = (input: JsonObject, context: ToolContext): Promise<ToolResult> => this.call(tool.name, input, context);
    return { ...tool, source: this.source, timeoutMs, concurrency: 0, approval, call };
  }

  private warnOnce(message: string): void {
    if (this.warned.has(message) || this.warned.size > 100) return;
    this.warned.add(message);
    this.options.warn?.(`MCP server ${this.config.name} ${this.conceal(message)}.`);
  }
}
