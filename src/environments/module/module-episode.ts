import { messageOf } from '../../tools/message-of.ts';
import type { JsonObject } from '../../tools/tool.ts';
import { blocksOf } from '../blocks.ts';
import {
  type Block,
  EnvironmentError,
  type Episode,
  type EpisodeCall,
  type EpisodeRequest,
  type Outcome,
  type ToolSpec,
} from '../environment.ts';
import { unknownTool } from '../outcome.ts';
import type { DefinedEnvironment, EpisodeContext, EpisodeStart } from './define-environment.ts';
import type { EpisodeTool } from './episode-tool.ts';
import type { Toolset } from './toolset.ts';

/** What stays the same for the whole episode. */
type Facts = Omit<EpisodeStart, 'signal'>;

export interface EpisodeParts {
  readonly definition: DefinedEnvironment;
  readonly toolset: Toolset;
  readonly request: EpisodeRequest;
  /** Its own. */
  readonly task: JsonObject;
  /** A sentence for the log. */
  readonly warn: (message: string) => void;
}

/** One episode of a module's environment: the state that its setup has given, and the tools of its task. */
export class ModuleEpisode implements Episode {
  private readonly definition: DefinedEnvironment;
  private readonly facts: Facts;
  private state: unknown;
  private toolset: Toolset;
  private closed: Promise<void> | undefined;

  private constructor({ definition, toolset, request, task }: EpisodeParts) {
    const { sid, principal, choice, secrets } = request;
    this.definition = definition;
    this.toolset = toolset;
    this.facts = {
      ...{ sid, principal, task },
      ...('split' in choice && { split: choice.split, index: choice.index }),
      secrets: Object.freeze({ ...secrets }),
    };
  }

  /** The setup. It is waited for even behind an aborted signal: what it makes meanwhile has to be torn down. */
  static async open(parts: EpisodeParts, signal: AbortSignal): Promise<ModuleEpisode> {
    signal.throwIfAborted();
    const episode = new ModuleEpisode(parts);
    try {
      await episode.begin(signal);
      signal.throwIfAborted();
      return episode;
    } catch (error) {
      await episode.close().catch((after: unknown) => {
        const reason = messageOf(after);
        parts.warn(`The teardown of ${parts.definition.name} failed after its setup had: ${reason}`);
      });
      throw error;
    }
  }

  async tools(): Promise<readonly ToolSpec[]> {
    return this.toolset.specs();
  }

  async prompt(signal: AbortSignal): Promise<readonly Block[]> {
    const given = await this.definition.prompt(this.context(signal));
    try {
      return blocksOf(given, 'prompt');
    } catch (error) {
      const reason = messageOf(error);
      throw new EnvironmentError('failed', `The prompt cannot be used: ${reason}.`);
    }
  }

  async call({ name, input, signal }: EpisodeCall): Promise<Outcome> {
    const tool: EpisodeTool | undefined = this.toolset.find(name);
    if (!tool) return unknownTool(name);
    return tool.call(input, this.context(signal));
  }

  timeLimitMs(tool: string): number | undefined {
    return this.toolset.find(tool)?.timeLimitMs;
  }

  close(): Promise<void> {
    this.closed ??= (async () => {
      await this.definition.teardown?.(Object.freeze({ ...this.facts, state: this.state }));
    })();
    return this.closed;
  }

  private async begin(signal: AbortSignal): Promise<void> {
    const { setup, taskTools } = this.definition;
    if (setup) this.state = await setup.call(this.definition, Object.freeze({ ...this.facts, signal }));
    signal.throwIfAborted();
    if (!taskTools) return;
    this.toolset = this.toolset.with(await taskTools.call(this.definition, this.context(signal)));
  }

  private context(signal: AbortSignal): EpisodeContext<JsonObject, unknown> {
    return Object.freeze({ ...this.facts, signal, state: this.state });
  }
}
