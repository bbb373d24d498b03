import type { DestinationStream } from 'pino';
import { type DefinedEnvironment, defineEnvironment } from '../../src/environments/module/define-environment.ts';
import { fail } from '../../src/tools/module/define-tool.ts';
import { makeDirectory } from './directory.ts';
import { type RunningGateway, startGateway } from './gateway.ts';

export interface LabTask {
  /** What its setup does: `throw` repeats every secret, `wait` lasts until nobody waits any more. */
  readonly setup?: 'throw' | 'wait';
  readonly prompt?: 'throw';
  readonly n?: number;
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

const said = (secrets: Readonly<Record<string, string>>): string => Object.values(secrets).join(' and ');

/** An environment that does whatever a test asks of it. */
export const lab = (name = 'Lab', other: Record<string, unknown> = {}): DefinedEnvironment =>
  defineEnvironment<LabTask>({
    name,
    splits: ['train', 'test'],
    tasks: { train: [{ n: 0 }, { n: 1 }, { n: 2 }], test: [{ setup: 'throw' }, { prompt: 'throw' }] },
    setup: async ({ task, secrets, signal }) => {
      if (task.setup === 'wait') await untilAborted(signal);
      if (task.setup === 'throw') throw new Error(`cannot begin with ${said(secrets)}`);
    },
    tools: [
      {
        name: 'submit',
        description: 'Ends the episode.',
        input: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
        run: ({ n }, { task }) => ({ text: 'Thanks.', reward: n === task.n ? 1 : 0, finished: true }),
      },
      { name: 'repeat', description: 'Says it again.', run: ({ text, times }) => String(text).repeat(Number(times)) },
      { name: 'refuse', description: 'Says no.', run: (_, { secrets }) => fail(`no: ${said(secrets)}`) },
      {
        name: 'throw',
        description: 'Breaks.',
        run: (_, { secrets }) => {
          throw new Error(`broken: ${said(secrets)}`);
        },
      },
      {
        name: 'wait',
        description: 'Takes for ever.',
        run: async (_, { signal }) => {
          await untilAborted(signal);
          return 'over';
        },
      },
      { name: 'hidden', description: 'Only for those who have an episode.', shared: false, run: () => 'found' },
    ],
    prompt: ({ task, secrets }) => {
      if (task.prompt === 'throw') throw new Error(`nothing to say but ${said(secrets)}`);
      return `Task ${task.n ?? '?'}.`;
    },
    teardown: ({ task, secrets }) => {
      if (task.prompt === 'throw') throw new Error(`cannot end with ${said(secrets)}`);
    },
    ...other,
  });

export interface HostOptions {
  /** As variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Settings of every environment. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly destination?: DestinationStream;
}

/**
 * A gateway that hosts environments. Its settings name a file for each, as an operator's would; what such a file exports
 * comes from here, because Jest cannot import one.
 */
export const startHosting = async (
  environments: readonly DefinedEnvironment[],
  { env = {}, settings = {}, destination }: HostOptions = {},
): Promise<RunningGateway> => {
  const directory = makeDirectory();
  try {
    const files = environments.map((_, i) => directory.write(`environment-${i}.mjs`, ''));
    const hosted = files.map((module) => ({ module, ...settings }));
    directory.write('sluice.yaml', JSON.stringify({ ors: { environments: hosted } }));
    return await startGateway(env, destination, {
      directory: directory.path,
      load: async (url) => ({ default: environments[Number(/environment-(\d+)/.exec(url)?.[1])] }),
    });
  } finally {
    directory.remove();
  }
};
