import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../streams/logs.ts';
import { Cli } from './child.ts';
import { SECRET } from './gateway.ts';

/** What the samples of others train in: `submit` as they call it, and tools that bring what is hard to deliver. */
const GSM8K = `
import { appendFileSync } from 'node:fs';
import { defineEnvironment, fail } from 'sluice';

const begun = (name) => appendFileSync('calls.txt', name + '\\n');
const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); });
});

export default defineEnvironment({
  name: 'gsm8k',
  splits: ['train', 'test'],
  tasks: { count: () => 3, get: (split, index) => ({ split, index, question: 'What is 6 x 7?', answer: 42 }) },
  setup: ({ task }) => {
    if (task.broken) throw new Error('no such machine');
  },
  prompt: ({ task }) => task.question ?? 'A question.',
  tools: [
    {
      name: 'submit',
      description: 'Submits an answer.',
      input: { type: 'object', properties: { answer: { type: 'number' } }, required: ['answer'] },
      run: ({ answer }) =>
        answer === 42
          ? { text: 'Correct!', reward: 1, finished: true }
          : { text: 'Wrong.', reward: 0, finished: true },
    },
    { name: 'repeat', description: 'Repeats a text.', run: ({ text, times }) => text.repeat(times) },
    { name: 'fail', description: 'Did not work.', run: () => fail('Invalid answer format') },
    { name: 'throw', description: 'Breaks.', run: ({ message = 'kaputt' }) => { throw new Error(message); } },
    {
      name: 'wait',
      description: 'Takes its time.',
      run: async ({ ms, text = 'waited' }, { signal }) => {
        begun('wait');
        await pause(ms, signal);
        return text;
      },
    },
  ],
});
`;

export interface OrsSite {
  readonly cli: Cli;
  readonly url: string;
  readonly port: number;
  /** The lines of the episode log, so far. */
  readonly episodes: Record<string, unknown>[];
  /** How often the tool `wait` has begun. */
  readonly waits: number;
  /** A session that is ready for calls. */
  session(choice?: object): Promise<string>;
  stop(): Promise<void>;
}

const linesOf = (path: string): string[] => {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  } catch {
    return []; // nothing was written yet
  }
};

/** A gateway with an environment, as a process of its own: only there modules are loaded as operators write them. */
export const startOrs = async (settings = '', env: Readonly<Record<string, string>> = {}): Promise<OrsSite> => {
  const config = `
port: 0
ors:
  environments:
    - { module: ./gsm8k.mjs, maxSessions: 4, maxQueued: 0 }
  episodeLog: episodes.jsonl
${settings}`;
  const files = { 'sluice.yaml': config, 'gsm8k.mjs': GSM8K };
  const cli = new Cli(['serve'], { files, env: { SLUICE_JWT_SECRET: SECRET, ...env } });
  const said = (): string | undefined => cli.lines.find((line) => line.includes('The gateway is listening.'));
  await Promise.race([
    eventually(() => said() !== undefined, 20_000),
    cli.ended.then(({ stdout, stderr }) => Promise.reject(new Error(`It did not start: ${stdout}${stderr}`))),
  ]);
  const url = /http:[/\d.:]+/.exec(said() ?? '')?.[0] ?? '';
  let sessions = 0;
  return {
    cli,
    url,
    port: Number(new URL(url).port),
    get episodes() {
      return linesOf(join(cli.directory, 'episodes.jsonl')).map((line) => JSON.parse(line) as Record<string, unknown>);
    },
    get waits() {
      return linesOf(join(cli.directory, 'calls.txt')).length;
    },
    session: async (choice = { split: 'train', index: 0 }) => {
      const sid = `session-${++sessions}`;
      const headers = { 'X-Session-ID': sid };
      const created = await fetch(`${url}/create`, { method: 'POST', headers, body: JSON.stringify(choice) });
      if (!created.ok) throw new Error(await created.text());
      return sid;
    },
    stop: () => cli.stop(),
  };
};
