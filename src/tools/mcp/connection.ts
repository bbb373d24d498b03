import { Client, type StandardSchemaV1 } from '@modelcontextprotocol/client';
import { type JsonObject, type ToolContext, ToolError, type ToolResult } from '../tool.ts';
import type { McpServerConfig } from './config.ts';
import { callFailure, isAnswer, reasonOf, SessionGone, sentence } from './failure.ts';
import { HttpStatus } from './http-error.ts';
import { HttpTransport } from './http-transport.ts';
import { type Listing, listTools } from './listing.ts';
import { Notes } from './notes.ts';
import { toolResult } from './result.ts';
import { StdioTransport } from './stdio-transport.ts';
import type { ServerTransport } from './transport.ts';

export interface ConnectionOptions {
  readonly version: string;
  readonly setpriv: string | undefined;
  /** Until it is connected and has listed its tools. */
  readonly startMs: number;
  /** Between two listings; 0: only when the server says that something has changed. */
  readonly refreshMs: number;
  /** For one answer that is not a tool's. */
  readonly answerMs: number;
  readonly maxResultBytes: number;
  readonly conceal: (text: string) => string;
}

export interface ConnectionHooks {
  /** What it offers now. */
  tools(listing: Listing): void;
  /** It is connected, but something went wrong: a sentence. */
  trouble(problem: string): void;
  note(line: string): void;
  warn(message: string): void;
}

export interface Ending {
  /** A sentence. */
  readonly reason: string;
  /** Nothing is broken: a session was over. */
  readonly expected: boolean;
}

/** The longest wait that a timer can do: calls have the time limits of the registry, not of the SDK. */
const NO_LIMIT_MS = 2 ** 31 - 1;
/** Several nudges in a moment are one. */
const NUDGE_MS = 50;
const TROUBLE_MS = 1_000;
/** So many failed checks in a row are an end: one may have come at a bad moment. */
const MISSES = 2;

/** Takes any answer as it is: ours to judge, so that a kind of content that the SDK does not know yet is not an error. */
const ANYTHING: StandardSchemaV1<unknown, unknown> = {
  '~standard': { version: 1, vendor: 'sluice', validate: (value) => ({ value }) },
};

/** One connection to an MCP server, from its beginning to its end. */
export class Connection {
  /** Resolves when it is of no use any more. */
  readonly lost: Promise<Ending>;
  private readonly config: McpServerConfig;
  private readonly options: ConnectionOptions;
  private readonly hooks: ConnectionHooks;
  private readonly transport: ServerTransport;
  private readonly client: Client;
  private over: Ending | undefined;
  private tellLost: (ending: Ending) => void = () => {};
  private closing: Promise<void> | undefined;
  private running = 0;
  private tokens = 0;
  private readonly progress = new Map<unknown, ToolContext['progress']>();
  private misses = 0;
  private begun = false;
  private checking = false;
  private nudged = false;
  private timer: NodeJS.Timeout | undefined;

  private constructor(config: McpServerConfig, options: ConnectionOptions, hooks: ConnectionHooks) {
    const { maxResultBytes: maxMessageBytes, version, conceal } = options;
    this.config = config;
    this.options = options;
    this.hooks = hooks;
    this.lost = new Promise((tell) => {
      this.tellLost = tell;
    });
    this.transport =
      config.transport === 'stdio'
        ? new StdioTransport(config, { ...options, ...hooks, maxMessageBytes })
        : new HttpTransport(config, { maxMessageBytes });
    this.transport.onprogress = ({ progressToken, progress, total, message }) => {
      if (typeof progress !== 'number') return;
      this.progress.get(progressToken)?.({
        progress,
        ...(typeof total === 'number' && { total }),
        ...(typeof message === 'string' && { message }),
      });
    };
    this.client = new Client({ name: 'sluice', version });
    this.client.onclose = () =>
      this.end({ reason: this.transport.lastWords || 'The connection was closed.', expected: false });
    // Not an end by itself, but a reason to look.
    this.client.onerror = () => this.nudge();
    this.client.setNotificationHandler('notifications/tools/list_changed', () => this.nudge());
    const notes = new Notes({ note: hooks.note, conceal });
    this.client.setNotificationHandler('notifications/message', ({ params: { level, data } }) => {
      notes.push(Buffer.from(`${level}: ${typeof data === 'string' ? data : JSON.stringify(data)}\n`));
    });
  }

  /** Rejects with a sentence. Nothing is left behind then. */
  static async open(
    config: McpServerConfig,
    options: ConnectionOptions,
    hooks: ConnectionHooks,
    stop: AbortSignal,
  ): Promise<Connection> {
    const connection = new Connection(config, options, hooks);
    try {
      await connection.begin(stop);
      return connection;
    } catch (error) {
      // First: the last words of a process are complete when it has ended.
      await connection.close();
      const { lastWords } = connection.transport;
      throw new Error(
        options.conceal(`${sentence(`It could not be started: ${reasonOf(error)}`)} ${lastWords}`.trim()),
      );
    }
  }

  get usable(): boolean {
    return this.over === undefined;
  }

  /** Calls a tool once. Throws a `ToolError`, the signal's reason, or a `SessionGone` if the call was refused for that. */
  async call(tool: string, input: JsonObject, { signal, progress }: ToolContext): Promise<ToolResult> {
    this.running++;
    const token = ++this.tokens;
    try {
      this.progress.set(token, progress);
      const params = { name: tool, arguments: input, _meta: { progressToken: token } };
      const answer = await this.client.request({ method: 'tools/call', params }, ANYTHING, {
        signal,
        timeout: NO_LIMIT_MS,
      });
      return toolResult(answer);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (this.isSessionGone(error)) {
        this.drop('Its session was over.', true);
        throw new SessionGone();
      }
      if (!isAnswer(error) && !(error instanceof ToolError)) this.nudge();
      throw callFailure(error, this.config.name, tool, this.options.conceal);
    } finally {
      this.progress.delete(token);
      this.running--;
    }
  }

  close(): Promise<void> {
    this.closing ??= (async () => {
      this.end({ reason: 'It was stopped.', expected: false });
      await this.transport.close();
    })();
    return this.closing;
  }

  private async begin(stop: AbortSignal): Promise<void> {
    const { startMs } = this.options;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`it was not ready within ${startMs / 1_000} s`)), startMs);
    const leave = (): void => late.abort(new Error('it was stopped'));
    stop.addEventListener('abort', leave, { once: true });
    if (stop.aborted) leave();
    const given = new Promise<never>((_, reject) => {
      late.signal.addEventListener('abort', () => reject(late.signal.reason as Error), { once: true });
      if (late.signal.aborted) reject(late.signal.reason as Error);
    });
    try {
      const connected = this.client.connect(this.transport, { timeout: startMs });
      connected.catch(() => {}); // it may fail after it was given up
      await Promise.race([connected, given]);
      await Promise.race([this.first(), given]);
      if (this.over) throw new Error(this.over.reason);
    } finally {
      clearTimeout(timer);
      stop.removeEventListener('abort', leave);
    }
  }

  /** Unlike later, a server whose first answer does not come has not started. */
  private async first(): Promise<void> {
    try {
      const listing = await this.list(this.options.startMs);
      if (!this.over) this.hooks.tools(listing);
    } catch (error) {
      if (!isAnswer(error)) throw error;
      this.hooks.trouble(this.problem(error));
    }
    this.begun = true;
    this.look(this.nudged ? NUDGE_MS : this.options.refreshMs);
  }

  /** Lists the tools, which also shows that the server lives. Never rejects. */
  private async check(): Promise<void> {
    this.checking = true;
    this.nudged = false;
    let next = this.options.refreshMs;
    try {
      const listing = await this.list(this.options.answerMs);
      this.misses = 0;
      if (!this.over) this.hooks.tools(listing);
    } catch (error) {
      next = this.judge(error);
    }
    this.checking = false;
    this.look(this.nudged ? NUDGE_MS : next);
  }

  private look(inMs: number): void {
    clearTimeout(this.timer);
    if (!this.over && inMs > 0) this.timer = setTimeout(() => void this.check(), inMs).unref();
  }

  private problem(error: unknown): string {
    return this.options.conceal(sentence(`Its tools could not be listed: ${reasonOf(error)}`));
  }

  /** What a failed check means; how long to wait for the next one. */
  private judge(error: unknown): number {
    if (this.over) return 0;
    const problem = this.problem(error);
    if (this.isSessionGone(error)) {
      this.drop('Its session was over.', true);
      return 0;
    }
    this.hooks.trouble(problem);
    if (isAnswer(error)) {
      this.misses = 0;
      return this.options.refreshMs;
    }
    this.misses++;
    // A server that does one thing at a time does not answer while it works, and a call has its own connection over
    // HTTP: whoever waits for a result is not cut off because of a check.
    if (this.running > 0) return TROUBLE_MS;
    if (this.misses < MISSES) return NUDGE_MS;
    this.drop(problem, false);
    return 0;
  }

  private async list(timeout: number): Promise<Listing> {
    if (!this.client.getServerCapabilities()?.tools) {
      await this.client.ping({ timeout });
      return { tools: [], warnings: [] };
    }
    return listTools((cursor) =>
      this.client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, ANYTHING, {
        timeout,
      }),
    );
  }

  /** Looks soon. */
  private nudge(): void {
    if (this.over || this.nudged) return;
    this.nudged = true;
    if (this.checking || !this.begun) return;
    this.look(NUDGE_MS);
  }

  private isSessionGone(error: unknown): boolean {
    if (!(error instanceof HttpStatus) || error.status !== 404) return false;
    return this.transport instanceof HttpTransport && this.transport.hasSession;
  }

  private drop(reason: string, expected: boolean): void {
    this.end({ reason, expected });
    void this.close();
  }

  private end(ending: Ending): void {
    if (this.over) return;
    this.over = ending;
    clearTimeout(this.timer);
    this.tellLost({ ...ending, reason: this.options.conceal(ending.reason) });
  }
}
