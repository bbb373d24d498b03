import type { Block, EpisodeRequest, Outcome } from '../../../src/environments/environment.ts';
import { defineEnvironment, type EpisodeContext } from '../../../src/environments/module/define-environment.ts';
import { ModuleEnvironment } from '../../../src/environments/module/module-environment.ts';

export interface Sum {
  readonly a: number;
  readonly b: number;
}

export const never = new AbortController().signal;

export const request = (choice: EpisodeRequest['choice'], secrets: Record<string, string> = {}): EpisodeRequest => ({
  sid: 'sid-1',
  principal: 'ada',
  choice,
  secrets,
});

export const FIRST = request({ split: 'train', index: 0 });

export const call = (name: string, input: Record<string, unknown> = {}, signal = never) => ({
  name,
  input,
  taskId: 't',
  signal,
});

export const textsOf = (outcome: Outcome): string[] =>
  outcome.ok ? outcome.output.blocks.map((block: Block) => ('text' in block ? block.text : '')) : [outcome.error];

/** Sums, with what the test wants otherwise. */
export const sums = (other: Record<string, unknown> = {}): ModuleEnvironment =>
  new ModuleEnvironment(
    defineEnvironment<Sum>({
      name: 'Sums',
      splits: ['train'],
      tasks: { train: [{ a: 1, b: 2 }] },
      tools: [
        {
          name: 'submit',
          description: 'Ends the episode.',
          input: { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'] },
          run: ({ sum }, { task }) => ({ text: 'Thanks.', reward: sum === task.a + task.b ? 1 : 0, finished: true }),
        },
      ],
      prompt: ({ task }) => `${task.a} + ${task.b}?`,
      ...other,
    }),
  );

export const tool = (name: string, run: (input: never, episode: EpisodeContext) => unknown, other = {}) => ({
  ...{ name, description: `${name}.`, run },
  ...other,
});
