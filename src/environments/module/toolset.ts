import { messageOf } from '../../tools/message-of.ts';
import { EnvironmentError, type ToolSpec } from '../environment.ts';
import { kindOf } from '../plain-data.ts';
import { type EpisodeTool, episodeTool } from './episode-tool.ts';

const byName = (a: EpisodeTool, b: EpisodeTool): number => (a.spec.name < b.spec.name ? -1 : 1);

/** Every tool by its name, those that all tasks share first. */
export class Toolset {
  private readonly tools: ReadonlyMap<string, EpisodeTool>;
  /** A tool that many episodes give is made once: to compile its schema is most of the work. */
  private readonly made: WeakMap<object, EpisodeTool>;

  private constructor(tools: readonly EpisodeTool[], made: WeakMap<object, EpisodeTool>) {
    const sorted = [
      ...tools.filter(({ shared }) => shared).sort(byName),
      ...tools.filter(({ shared }) => !shared).sort(byName),
    ];
    this.tools = new Map(sorted.map((tool) => [tool.spec.name, tool]));
    this.made = made;
    const twice = tools.find(({ spec }, i) => tools.findIndex((other) => other.spec.name === spec.name) !== i);
    if (twice) throw new Error(`There are two tools called ${twice.spec.name}.`);
  }

  /** Throws one sentence if one of them cannot be used. */
  static of(given: unknown): Toolset {
    if (!Array.isArray(given)) throw new Error(`The tools must be a list, not ${kindOf(given)}.`);
    return new Toolset(given.map(episodeTool), new WeakMap());
  }

  /** These, and those of a task. Throws an `EnvironmentError`. */
  with(given: unknown): Toolset {
    try {
      if (!Array.isArray(given)) throw new Error(`The tools of the task must be a list, not ${kindOf(given)}.`);
      const own = given.map((one: unknown) => this.ofTask(one));
      return new Toolset([...this.tools.values(), ...own], this.made);
    } catch (error) {
      throw new EnvironmentError('failed', messageOf(error), error);
    }
  }

  get size(): number {
    return this.tools.size;
  }

  find(name: string): EpisodeTool | undefined {
    return this.tools.get(name);
  }

  specs(): readonly ToolSpec[] {
    return [...this.tools.values()].map(({ spec }) => spec);
  }

  /** Those that are known without an episode. */
  sharedSpecs(): readonly ToolSpec[] {
    return [...this.tools.values()].filter(({ shared }) => shared).map(({ spec }) => spec);
  }

  private ofTask(given: unknown): EpisodeTool {
    const before = typeof given === 'object' && given !== null ? this.made.get(given) : undefined;
    if (before) return before;
    const tool = { ...episodeTool(given), shared: false };
    this.made.set(given as object, tool);
    return tool;
  }
}
