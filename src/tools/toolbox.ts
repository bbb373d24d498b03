import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/config-error.ts';
import { httpTool } from './http/http-tool.ts';
import { type McpServerConfig, parseMcpServers, readMcpServers } from './mcp/config.ts';
import type { McpServerState } from './mcp/mcp-server.ts';
import { McpServers } from './mcp/mcp-servers.ts';
import { messageOf } from './message-of.ts';
import { type ImportModule, loadToolModule } from './module/tool-module.ts';
import { fill } from './placeholders.ts';
import { type ToolObserver, ToolRegistry } from './registry.ts';
import type { Tool, ToolProvider } from './tool.ts';

export interface ToolboxOptions {
  readonly settings: Pick<Config, 'tools' | 'mcp'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly observe?: ToolObserver;
  /** A sentence for the log. */
  readonly warn: (message: string) => void;
  /** What an MCP server has to say beside its answers. */
  readonly note?: (server: string, line: string) => void;
  readonly mcpState?: (state: McpServerState) => void;
  readonly load?: ImportModule;
}

/** Every tool of the settings, in one registry. */
export class Toolbox {
  readonly registry: ToolRegistry;
  private readonly options: ToolboxOptions;
  private readonly mcp: McpServers;
  private brought: ReadonlyMap<string, unknown> = new Map();

  private constructor(options: ToolboxOptions, registry: ToolRegistry, mcp: McpServers) {
    this.options = options;
    this.registry = registry;
    this.mcp = mcp;
  }

  /** MCP servers start in the background: none of them can hold up or stop anything. Throws a `ConfigError`. */
  static async open(options: ToolboxOptions): Promise<Toolbox> {
    const { settings, observe, warn, note, mcpState } = options;
    const problems: string[] = [];
    const http = httpTools(options, problems);
    const modules = await toolModules(options, problems);
    if (problems.length > 0) throw new ConfigError(problems);
    const mcp = new McpServers(await mcpServers(options), {
      refreshMs: settings.mcp.refreshSeconds * 1_000,
      warn,
      ...(note && { note }),
      ...(mcpState && { onState: mcpState }),
    });
    const registry = new ToolRegistry({ warn, ...(observe && { observe }) });
    for (const provider of [...http, ...modules, ...mcp.providers()]) registry.add(provider);
    return new Toolbox(options, registry, mcp);
  }

  mcpStates(): readonly McpServerState[] {
    return this.mcp.states();
  }

  /**
   * MCP servers that come with manifests, beside those of the file, by name; the file's own win. What is the same as before
   * is left alone.
   */
  async bring(servers: ReadonlyMap<string, unknown>): Promise<void> {
    this.brought = servers;
    await this.reloadServers();
  }

  /** Resolves when every MCP server is ready or has failed once, or after so many ms. */
  settled(ms: number): Promise<void> {
    return this.mcp.settled(ms);
  }

  /** Loads anew what may have changed. What is wrong then changes nothing: the old tools stay, and the log says why. */
  async reload(): Promise<void> {
    const problems: string[] = [];
    const modules = await toolModules(this.options, problems);
    for (const problem of problems) this.options.warn(problem);
    if (problems.length === 0) this.registry.replace('module', modules);
    await this.reloadServers();
  }

  close(): Promise<void> {
    return this.mcp.close();
  }

  private async reloadServers(): Promise<void> {
    const { env, warn } = this.options;
    const own = await mcpServers(this.options);
    const names = new Set(own.map(({ name }) => name));
    const entries = [...this.brought].filter(([name]) => !names.has(name));
    const brought = parseMcpServers(JSON.stringify({ mcpServers: Object.fromEntries(entries) }), env);
    for (const problem of [...brought.problems, ...brought.warnings]) warn(`In a manifest: ${problem}`);
    const ended = this.mcp.reload([...own, ...brought.servers]);
    this.registry.replace('mcp', this.mcp.providers());
    await ended;
  }
}

const mcpServers = async ({ settings, env, warn }: ToolboxOptions): Promise<readonly McpServerConfig[]> => {
  if (settings.mcp.servers === undefined) return [];
  const { servers, problems, warnings } = await readMcpServers(settings.mcp.servers, env);
  for (const problem of [...problems, ...warnings]) warn(problem);
  return servers;
};

const httpTools = ({ settings, env }: ToolboxOptions, problems: string[]): ToolProvider[] => {
  const tools: Tool[] = [];
  for (const [name, tool] of Object.entries(settings.tools.http)) {
    try {
      tools.push(httpTool(name, tool, (text) => fill(text, env).text));
    } catch (error) {
      problems.push(`tools.http.${name}: ${messageOf(error)}`);
    }
  }
  if (tools.length === 0) return [];
  return [{ source: { kind: 'http', name: 'http' }, concurrency: 0, tools: () => tools, onChange: () => {} }];
};

const toolModules = async ({ settings, load }: ToolboxOptions, problems: string[]): Promise<ToolProvider[]> => {
  const { modules } = settings.tools;
  const loaded = await Promise.all(
    modules.map((path) =>
      loadToolModule(path, load).catch((error: unknown) => {
        problems.push(messageOf(error));
        return undefined;
      }),
    ),
  );
  return loaded.filter((provider) => provider !== undefined);
};
