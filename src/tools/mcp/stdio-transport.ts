import { type JSONRPCMessage, parseJSONRPCMessage, serializeMessage } from '@modelcontextprotocol/client';
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';
import type { StdioServerConfig } from './config.ts';
import { Lines } from './lines.ts';
import { Notes } from './notes.ts';
import { ServerProcess } from './server-process.ts';
import { ServerTransport } from './transport.ts';

export interface StdioOptions {
  readonly setpriv: string | undefined;
  readonly maxMessageBytes: number;
  readonly conceal: (text: string) => string;
  /** A line that it wrote to its standard error. */
  readonly note: (line: string) => void;
  /** A sentence about it, for people. */
  readonly warn: (message: string) => void;
}

/** How long the end of a process may be behind its broken pipe. */
const LAST_WORDS_MS = 1_000;

const idAtBegin = /^\{"jsonrpc":"2\.0","id":(\d+),/;
const idAtEnd = /"id":(\d+)(?:,"jsonrpc":"2\.0")?\}\r?$/;

/**
 * Messages as lines of a child process. Of our own environment the child gets what the SDK holds for harmless (on POSIX
 * HOME, LOGNAME, PATH, SHELL, TERM and USER) and nothing else.
 */
export class StdioTransport extends ServerTransport {
  private readonly config: StdioServerConfig;
  private readonly options: StdioOptions;
  private readonly notes: Notes;
  private readonly lines: Lines;
  private process: ServerProcess | undefined;
  private end = '';
  private closing = false;
  private warned = false;

  constructor(config: StdioServerConfig, options: StdioOptions) {
    super();
    this.config = config;
    this.options = options;
    this.notes = new Notes(options);
    this.lines = new Lines(options.maxMessageBytes, {
      line: (text) => this.take(text),
      tooLong: (head, tail) => this.tooLong(head, tail),
    });
  }

  override get lastWords(): string {
    return [this.end && `The process ${this.end}.`, this.notes.last && `It wrote: ${this.notes.last}`]
      .filter(Boolean)
      .join(' ');
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.config;
    const { setpriv } = this.options;
    const started = await ServerProcess.start({
      command,
      args,
      cwd,
      setpriv,
      env: { ...getDefaultEnvironment(), ...env },
      output: (chunk) => this.lines.push(chunk),
      notes: (chunk) => this.notes.push(chunk),
    });
    this.process = started;
    void started.ended.then((how) => {
      if (!this.closing) this.end = how;
      this.notes.end();
      this.onclose?.();
    });
    if (this.closing) await started.stop();
  }

  async close(): Promise<void> {
    this.closing = true;
    await this.process?.stop();
  }

  protected override async write(message: JSONRPCMessage): Promise<void> {
    if (!this.process) throw new Error('The process has not been started.');
    try {
      await this.process.write(serializeMessage(message));
    } catch (error) {
      // Most often it has ended and this is the first sign of it: its end tells more than a broken pipe.
      const late = new Promise<void>((resolve) => setTimeout(resolve, LAST_WORDS_MS).unref());
      await Promise.race([this.process.ended, late]);
      throw error;
    }
  }

  private take(line: string): void {
    if (line.trim() === '') return;
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(JSON.parse(line));
    } catch {
      this.warnOnce(line);
      return;
    }
    this.deliver(message);
  }

  /** Many programs greet, or print what they debug: that is no reason to give them up. */
  private warnOnce(line: string): void {
    if (this.warned) return;
    this.warned = true;
    const shown = this.options.conceal(line).slice(0, 100);
    this.options.warn(
      `writes something else than messages to its standard output, which is left out: ${JSON.stringify(shown)}`,
    );
  }

  private tooLong(head: string, tail: string): void {
    const found = idAtBegin.exec(head)?.[1] ?? idAtEnd.exec(tail)?.[1];
    const id = found !== undefined && this.isWaiting(Number(found)) ? Number(found) : this.onlyCall;
    if (id !== undefined) {
      this.lose(id, 'too_large');
      return;
    }
    this.end = 'sent a message that is too large';
    void this.close();
  }
}
