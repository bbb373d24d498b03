import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type McpServersFile, parseMcpServers } from '../../../src/tools/mcp/config.ts';
import type { McpServerState } from '../../../src/tools/mcp/mcp-server.ts';
import { McpServers, type McpServersOptions } from '../../../src/tools/mcp/mcp-servers.ts';
import { type ToolCall, ToolRegistry } from '../../../src/tools/registry.ts';
import type { ToolError, ToolResult } from '../../../src/tools/tool.ts';
import { makeDirectory } from '../../support/directory.ts';
import { running } from '../../support/running.ts';

const fixtures = join(__dirname, '../../fixtures/mcp');
const everything = join(__dirname, '../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js');

/** Servers of the file, by name. */
export type Entries = Readonly<Record<string, object>>;

export const PUPPET = join(fixtures, 'server.js');
export const WRAPPER = join(fixtures, 'wrapper.sh');

/** Our own server that does as it is told. */
export const puppet = (behaviour: object = {}, more: object = {}): object => ({
  command: 'node',
  args: [PUPPET, JSON.stringify(behaviour)],
  ...more,
});

/** The reference server of the protocol. */
export const everythingOnStdio = (): object => ({ command: 'node', args: [everything] });
export const EVERYTHING = everything;

/** A program in the words of a shell. */
export const shell = (script: string, more: object = {}): object => ({ command: 'sh', args: ['-c', script], ...more });

/** As a gateway reads it. */
export const configured = (entries: Entries, env: Readonly<Record<string, string>> = {}): McpServersFile =>
  parseMcpServers(JSON.stringify({ mcpServers: entries }), env);

/** Times in which a test can wait for everything. */
const QUICK: McpServersOptions = {
  refreshMs: 100,
  answerMs: 1_000,
  startMs: 20_000,
  readyMs: 10_000,
  restart: { firstMs: 100, longestMs: 1_000, stableMs: 5_000 },
};

/** MCP servers behind a registry, as in a gateway, and all that could be seen of them. */
export class Room {
  readonly states: McpServerState[] = [];
  readonly notes: string[] = [];
  readonly warnings: string[] = [];
  readonly servers: McpServers;
  readonly registry: ToolRegistry;

  constructor(entries: Entries, options: McpServersOptions = {}, env: Readonly<Record<string, string>> = {}) {
    const { servers, problems } = configured(entries, env);
    if (problems.length > 0) throw new Error(problems.join(' '));
    this.servers = new McpServers(servers, {
      ...QUICK,
      onState: (state) => this.states.push(state),
      note: (server, line) => this.notes.push(`${server}: ${line}`),
      warn: (message) => this.warnings.push(message),
      ...options,
    });
    this.registry = new ToolRegistry({ warn: (message) => this.warnings.push(message) });
    for (const provider of this.servers.providers()) this.registry.add(provider);
    running.add(this);
  }

  /** When every server has started, or failed to. */
  static async open(...args: ConstructorParameters<typeof Room>): Promise<Room> {
    const room = new Room(...args);
    await room.servers.settled(20_000);
    return room;
  }

  /** By which tools are reached. */
  get names(): readonly string[] {
    return this.registry.list().map(({ name }) => name);
  }

  state(name: string): McpServerState {
    return this.servers.states().find((state) => state.name === name) as McpServerState;
  }

  /** The states that a server went through. */
  phases(name: string): readonly string[] {
    const all = this.states.filter((state) => state.name === name).map(({ state }) => state);
    return all.filter((state, i) => state !== all[i - 1]);
  }

  call(tool: string, input: unknown = {}, call: Partial<ToolCall> = {}): Promise<ToolResult> {
    return this.registry.call(tool, input, { principal: 'ann', ...call });
  }

  async text(tool: string, input: unknown = {}, call: Partial<ToolCall> = {}): Promise<string> {
    const [block] = (await this.call(tool, input, call)).content;
    if (block?.type !== 'text') throw new Error(`not a text: ${JSON.stringify(block)}`);
    return block.text;
  }

  /** The error of a call that must fail. */
  async error(tool: string, input: unknown = {}, call: Partial<ToolCall> = {}): Promise<ToolError> {
    const outcome = await this.call(tool, input, call).catch((error: ToolError) => error);
    if (!(outcome instanceof Error)) throw new Error(`${tool} did not fail: ${JSON.stringify(outcome)}`);
    return outcome;
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.servers.close();
  }
}

/** A file that our own server writes what it does to. */
export const record = (): { readonly path: string; lines(): readonly string[]; remove(): void } => {
  const directory = makeDirectory();
  const path = directory.write('log', '');
  return { path, lines: () => readFileSync(path, 'utf8').split('\n').slice(0, -1), remove: () => directory.remove() };
};

/** Whether there is such a process that has not ended. What nobody has buried yet is dead all the same. */
export const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};
