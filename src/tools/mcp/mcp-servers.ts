import { isDeepStrictEqual } from 'node:util';
import { version } from '../../version.ts';
import type { ToolProvider } from '../tool.ts';
import type { McpServerConfig } from './config.ts';
import { McpServer, type McpServerOptions, type McpServerState } from './mcp-server.ts';
import { RESTART_TIMES } from './restart.ts';
import { findSetpriv } from './server-process.ts';

/** Everything has a default: see `DEFAULTS`. */
export type McpServersOptions = Partial<Omit<McpServerOptions, 'version' | 'setpriv'>>;

export const DEFAULTS = {
  refreshMs: 10_000,
  // Many are fetched by npx or uvx when they start for the first time.
  startMs: 60_000,
  answerMs: 10_000,
  readyMs: 2_000,
  callMs: 120_000,
  maxResultBytes: 16 * 1024 * 1024,
  restart: RESTART_TIMES,
} as const satisfies McpServersOptions;

/** All MCP servers of a gateway. They start in the background, at the same time, and none waits for another. */
export class McpServers {
  private readonly options: McpServerOptions;
  private servers: readonly McpServer[] = [];
  private closed = false;

  constructor(configs: readonly McpServerConfig[], options: McpServersOptions = {}) {
    this.options = { ...DEFAULTS, ...options, version: version(), setpriv: findSetpriv() };
    this.servers = configs.map((config) => new McpServer(config, this.options));
  }

  /** In the order of the configuration: the first with a tool wins its bare name. */
  providers(): readonly ToolProvider[] {
    return this.servers;
  }

  states(): readonly McpServerState[] {
    return this.servers.map(({ state }) => state);
  }

  /** Resolves when every server is ready or has failed for the first time, or after so many ms. */
  async settled(ms: number): Promise<void> {
    const late = AbortSignal.timeout(ms);
    await Promise.all(this.servers.map((server) => server.settled(late)));
  }

  /**
   * Starts what is new, stops what is gone, and leaves alone what is the same: take `providers` again afterwards.
   * Resolves when everything that had to stop has stopped.
   */
  async reload(configs: readonly McpServerConfig[]): Promise<void> {
    if (this.closed) return;
    const before = new Map(this.servers.map((server) => [server.config.name, server]));
    const ends: Promise<void>[] = [];
    this.servers = configs.map((config) => {
      const old = before.get(config.name);
      if (old && isDeepStrictEqual(old.config, config)) {
        before.delete(config.name);
        return old;
      }
      // Two of the same name never run at once: they may well work on the same files.
      return new McpServer(config, this.options, old ? this.end(old, before, ends) : Promise.resolve());
    });
    for (const old of before.values()) ends.push(old.close());
    await Promise.all(ends);
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all(this.servers.map((server) => server.close()));
  }

  private end(old: McpServer, before: Map<string, McpServer>, ends: Promise<void>[]): Promise<void> {
    before.delete(old.config.name);
    const end = old.close();
    ends.push(end);
    return end;
  }
}
