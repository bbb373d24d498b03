import type { McpEnvironmentSettings } from '../../../src/config/structures.ts';
import type { Episode, Outcome } from '../../../src/environments/environment.ts';
import { McpEnvironment, type McpEnvironmentOptions } from '../../../src/environments/mcp/mcp-environment.ts';
import type { JsonObject } from '../../../src/tools/tool.ts';
import { makeDirectory, type TestDirectory } from '../../support/directory.ts';
import { running } from '../../support/running.ts';
import { puppet } from '../../tools/mcp/room.ts';

export type LabSettings = Partial<McpEnvironmentSettings>;

const TASKS = '{"prompt":"Add 1 and 2.","answer":"3"}\n{"prompt":"Add 2 and 2.","answer":"4"}\n{"answer":"5"}\n';

/** An environment with a server that does as it is told, unless the settings say otherwise. */
export class Lab {
  readonly environment: McpEnvironment;
  readonly warnings: string[];
  readonly notes: string[];
  readonly directory: TestDirectory;

  private constructor(environment: McpEnvironment, directory: TestDirectory, warnings: string[], notes: string[]) {
    this.environment = environment;
    this.directory = directory;
    this.warnings = warnings;
    this.notes = notes;
    running.add(this);
  }

  static async open(settings: LabSettings = {}, options: Partial<McpEnvironmentOptions> = {}): Promise<Lab> {
    const directory = makeDirectory();
    const warnings: string[] = [];
    const notes: string[] = [];
    const train = directory.write('train.jsonl', TASKS);
    const environment = await McpEnvironment.create(
      { name: 'Lab', mcp: puppet() as JsonObject, tasks: { train }, ...settings },
      {
        env: {},
        warn: (message) => warnings.push(message),
        note: (_, line) => notes.push(line),
        ...options,
      },
    );
    return new Lab(environment, directory, warnings, notes);
  }

  begin(
    choice: JsonObject | number = 0,
    secrets: Readonly<Record<string, string>> = {},
    signal: AbortSignal = new AbortController().signal,
  ): Promise<Episode> {
    const chosen = typeof choice === 'number' ? { split: 'train', index: choice } : { task: choice };
    return this.environment.open({ sid: 's', principal: 'ann', choice: chosen, secrets }, signal);
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.environment.close();
    this.directory.remove();
  }
}

export const call = (
  episode: Episode,
  name: string,
  input: JsonObject = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<Outcome> => episode.call({ name, input, taskId: 't', signal });

/** The text of a call that must succeed. */
export const said = async (episode: Episode, name: string, input: JsonObject = {}): Promise<string> => {
  const outcome = await call(episode, name, input);
  if (!outcome.ok) throw new Error(outcome.error);
  return outcome.output.blocks.map((block) => (block.type === 'text' ? block.text : '[image]')).join('\n');
};

export const output = (text: string, more: object = {}): object => ({
  ok: true,
  output: { blocks: [{ text, detail: null, type: 'text' }], metadata: null, reward: null, finished: false, ...more },
});
