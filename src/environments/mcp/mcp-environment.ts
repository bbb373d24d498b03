import type { McpEnvironmentSettings } from '../../config/structures.ts';
import { McpServer, type McpServerOptions } from '../../tools/mcp/mcp-server.ts';
import { DEFAULTS } from '../../tools/mcp/mcp-servers.ts';
import { findSetpriv } from '../../tools/mcp/server-process.ts';
import { messageOf } from '../../tools/message-of.ts';
import type { ImportModule } from '../../tools/module/tool-module.ts';
import { SchemaCheck } from '../../tools/schema-check.ts';
import type { JsonObject } from '../../tools/tool.ts';
import { version } from '../../version.ts';
import {
  type Environment,
  EnvironmentError,
  type Episode,
  type EpisodeRequest,
  type Split,
  type TaskChoice,
  type ToolSpec,
} from '../environment.ts';
import { JsonlTasks } from '../tasks/jsonl-tasks.ts';
import { McpEpisode } from './mcp-episode.ts';
import { promptOf } from './prompt.ts';
import { expressionJudge, type Judge } from './reward.ts';
import { loadRewardModule } from './reward-module.ts';
import { ServerPlan } from './server-plan.ts';
import { specsOf } from './specs.ts';
import { submitTool } from './submit.ts';

export interface McpEnvironmentOptions {
  /** What `${NAME}` in the settings of the server stands for. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A sentence for the log. */
  readonly warn?: (message: string) => void;
  /** What a server has to say beside its answers; secrets are taken out. */
  readonly note?: (server: string, line: string) => void;
  readonly load?: ImportModule;
}

interface Parts {
  readonly plan: ServerPlan;
  readonly submit: ToolSpec | undefined;
  readonly judge: Judge;
}

const judgeOf = async (settings: McpEnvironmentSettings, load: ImportModule | undefined): Promise<Judge> => {
  const { reward, finished, rewardModule } = settings;
  if (rewardModule === undefined) return expressionJudge(settings);
  if (reward !== undefined || finished !== undefined) {
    throw new Error('rewardModule stands in the place of reward and finished: only one of them may be there.');
  }
  return loadRewardModule(rewardModule, load);
};

const partsOf = async (settings: McpEnvironmentSettings, options: McpEnvironmentOptions): Promise<Parts> => {
  const submit = submitTool(settings.submit);
  if (submit?.input_schema) new SchemaCheck(submit.input_schema);
  return { plan: new ServerPlan(settings, options), submit, judge: await judgeOf(settings, options.load) };
};

/** The tools of an MCP server, with tasks and rewards of our own. Every episode has a server, or a connection, of its own. */
export class McpEnvironment implements Environment {
  readonly name: string;
  readonly kind = 'mcp';
  private readonly settings: McpEnvironmentSettings;
  private readonly parts: Parts;
  private readonly taskFiles: JsonlTasks;
  private readonly serverOptions: McpServerOptions;
  private readonly servers = new Set<McpServer>();
  private readonly closing = new AbortController();
  private listing: Promise<readonly ToolSpec[]> | undefined;

  private constructor(settings: McpEnvironmentSettings, options: McpEnvironmentOptions, parts: Parts) {
    this.name = settings.name.toLowerCase();
    this.settings = settings;
    this.parts = parts;
    this.taskFiles = new JsonlTasks(settings.tasks);
    const { startTimeoutSeconds } = settings;
    const warned = new Set<string>();
    this.serverOptions = {
      ...DEFAULTS,
      version: version(),
      setpriv: findSetpriv(),
      once: true,
      // What changes is told by the server; to ask thousands of them again and again would be a load of its own.
      refreshMs: 0,
      ...(startTimeoutSeconds !== undefined && { startMs: startTimeoutSeconds * 1_000 }),
      ...(options.note && { note: options.note }),
      // All servers are the same one: what is odd about it is told once.
      warn: (message) => {
        if (warned.has(message) || warned.size > 100) return;
        warned.add(message);
        options.warn?.(message);
      },
    };
  }

  /** Throws one sentence if the settings cannot be used. Nothing is started yet. */
  static async create(settings: McpEnvironmentSettings, options: McpEnvironmentOptions): Promise<McpEnvironment> {
    try {
      return new McpEnvironment(settings, options, await partsOf(settings, options));
    } catch (error) {
      const reason = messageOf(error);
      throw new Error(`The environment ${settings.name} cannot be used: ${reason}`, { cause: error });
    }
  }

  async splits(): Promise<readonly Split[]> {
    return this.taskFiles.splits;
  }

  tools(): Promise<readonly ToolSpec[]> {
    if (!this.listing) {
      const listing = this.list();
      this.listing = listing;
      // Whoever asks next tries again.
      listing.catch(() => {
        if (this.listing === listing) this.listing = undefined;
      });
    }
    return this.listing;
  }

  tasks(split: string): Promise<readonly JsonObject[]> {
    return this.taskFiles.all(split);
  }

  count(split: string): Promise<number> {
    return this.taskFiles.count(split);
  }

  task(split: string, index: number): Promise<JsonObject> {
    return this.taskFiles.task(split, index);
  }

  range(split: string, start: number, stop: number): Promise<readonly JsonObject[]> {
    return this.taskFiles.range(split, start, stop);
  }

  async check(choice: TaskChoice): Promise<void> {
    promptOf(await this.chosen(choice), this.settings.prompt);
  }

  async open({ choice, principal, secrets }: EpisodeRequest, signal: AbortSignal): Promise<Episode> {
    const { plan, submit, judge } = this.parts;
    const task = await this.chosen(choice);
    const prompt = promptOf(task, this.settings.prompt);
    const server = await this.start(secrets, signal);
    // Those of a session with secrets may be its own.
    if (!plan.usesSecrets) this.listing ??= Promise.resolve(specsOf(server.tools(), submit));
    const { timeoutMs } = plan;
    const end = (): Promise<void> => this.end(server);
    return new McpEpisode({ server, task, prompt, principal, submit, judge, timeoutMs, end });
  }

  async close(): Promise<void> {
    this.closing.abort(new EnvironmentError('unavailable', 'The gateway is stopping.'));
    await Promise.all([...this.servers].map((server) => this.end(server)));
  }

  private async chosen(choice: TaskChoice): Promise<JsonObject> {
    return 'task' in choice ? choice.task : this.task(choice.split, choice.index);
  }

  /** A server that is only asked what it has. */
  private async list(): Promise<readonly ToolSpec[]> {
    const server = await this.start(undefined, this.closing.signal);
    const specs = specsOf(server.tools(), this.parts.submit);
    await this.end(server);
    return specs;
  }

  /** Resolves when it is ready. When it rejects, nothing is left of it. */
  private async start(secrets: Readonly<Record<string, string>> | undefined, signal: AbortSignal): Promise<McpServer> {
    const config = this.parts.plan.configFor(secrets);
    signal.throwIfAborted();
    this.closing.signal.throwIfAborted();
    const server = new McpServer(config, this.serverOptions);
    this.servers.add(server);
    try {
      await server.settled(signal);
      signal.throwIfAborted();
      this.closing.signal.throwIfAborted();
      this.refuseUnusable(server);
      return server;
    } catch (error) {
      await this.end(server);
      throw error;
    }
  }

  private refuseUnusable(server: McpServer): void {
    const { lastError } = server.state;
    // A server that cannot list its tools counts as ready elsewhere, where it may come to its senses.
    if (!server.usable || lastError !== undefined) {
      const reason = lastError ?? 'It has ended.';
      throw new EnvironmentError('unavailable', `The MCP server of ${this.name} is not available: ${reason}`);
    }
    const { submit } = this.parts;
    const names = server.tools().map(({ name }) => name);
    if (submit && names.includes(submit.name)) {
      const words = `has a tool "${submit.name}" of its own: the submit tool needs another name`;
      throw new EnvironmentError('failed', `The MCP server of ${this.name} ${words}.`);
    }
    if (!submit && names.length === 0) {
      throw new EnvironmentError('failed', `The MCP server of ${this.name} has no tools.`);
    }
  }

  private async end(server: McpServer): Promise<void> {
    await server.close();
    this.servers.delete(server);
  }
}
