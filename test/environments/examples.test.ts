import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { inNode } from './module/in-node.ts';

const FOLDER = join(__dirname, '../../environments');
const ARITHMETIC = join(FOLDER, 'arithmetic.js');
const ADVENTURE = join(FOLDER, 'text-adventure.js');

/** Plays an episode: what the prompt, the tools and each call gave. */
const play = (choice: object, ...calls: readonly (readonly [name: string, input?: object])[]): string => `
  const episode = await environments[0].open({ ...request(), choice: ${JSON.stringify(choice)} }, signal);
  const prompt = await episode.prompt(signal);
  const tools = (await episode.tools(signal)).map(({ name }) => name);
  const outcomes = [];
  for (const [name, input = {}] of ${JSON.stringify(calls)}) {
    outcomes.push(await episode.call({ name, input, taskId: 't', signal }));
  }
  await episode.close();
  return { prompt, tools, outcomes };`;

interface Played {
  readonly prompt: readonly { readonly text?: string; readonly data?: string }[];
  readonly tools: readonly string[];
  readonly outcomes: readonly {
    readonly ok: boolean;
    readonly error?: string;
    readonly output?: { readonly reward: number | null; readonly finished: boolean };
  }[];
}

const rewards = ({ outcomes }: Played): unknown[] => outcomes.map(({ output }) => output?.reward);
const ends = ({ outcomes }: Played): unknown[] => outcomes.map(({ output }) => output?.finished);

/** The answer, found from the words alone. */
const solve = (question: string): number => {
  const [first = 0, second = 0, third = 0] = (question.match(/\d+/g) ?? []).map(Number);
  if (question.includes('gives')) return first * second - third;
  if (question.includes('delivery')) return first * second + third;
  if (question.includes('every morning')) return first * (second + third);
  return first / second + third;
};

it('every example can be loaded', async () => {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.js'));
  expect(files.length).toBeGreaterThanOrEqual(2);
  for (const file of files) {
    expect(await inNode(join(FOLDER, file), 'return environments.length;')).toBe(1);
  }
});

describe('the example arithmetic', () => {
  it('has the same tasks in every process, all different, over all splits', async () => {
    const body = `
      const [environment] = environments;
      const counts = await Promise.all(['train', 'validation', 'test'].map((split) => environment.count(split)));
      const tasks = [
        ...(await environment.range('train', 0, 20_000)),
        ...(await environment.tasks('validation')),
        ...(await environment.tasks('test')),
      ];
      return { counts, tasks };`;
    const [one, two] = (await Promise.all([inNode(ARITHMETIC, body), inNode(ARITHMETIC, body)])) as {
      counts: number[];
      tasks: { question: string; answer: number }[];
    }[];
    expect(one?.counts).toEqual([20_000, 1_000, 1_000]);
    expect(one?.tasks).toHaveLength(22_000);
    expect(one?.tasks.at(-1)).toEqual(two?.tasks.at(-1));
    expect(new Set(one?.tasks.map(({ question }) => question)).size).toBe(22_000);
    expect(one?.tasks.filter(({ question, answer }) => solve(question) !== answer)).toEqual([]);
  });

  it('does not list the tasks for training all at once', async () => {
    const listed = await inNode(ARITHMETIC, "return environments[0].tasks('train').catch(({ code }) => code);");
    expect(listed).toBe('unsupported');
  });

  it('rewards the right answer, and no other', async () => {
    const task = { question: '6 * 7?', answer: 42 };
    const calls = [
      ['submit', { answer: 42 }],
      ['submit', { answer: 41 }],
      ['submit', { answer: '42' }],
    ] as const;
    const played = (await inNode(ARITHMETIC, play({ task }, ...calls))) as Played;
    expect(played.prompt[0]?.text).toMatch(/^6 \* 7\?\n/);
    expect(played.prompt[0]?.text).not.toContain('42');
    expect(rewards(played)).toEqual([1, 0, undefined]);
    expect(ends(played)).toEqual([true, true, undefined]);
  });

  it('calculates, and says what it cannot', async () => {
    const expressions = [
      '(3 + 4) * 5',
      '-2 * -(1 + 1.5)',
      '10 / 4 - 1',
      '1 / 0',
      '2 +',
      '(1',
      '1 2',
      'process.exit()',
      '',
    ];
    const calls = expressions.map((expression) => ['calculate', { expression }] as const);
    const played = (await inNode(ARITHMETIC, play({ split: 'test', index: 0 }, ...calls))) as Played;
    const refused = { ok: false, error: 'That is not an expression of numbers, + - * / and brackets.' };
    expect(played.outcomes).toMatchObject([
      ...['35', '5', '1.5'].map((text) => ({
        ok: true,
        output: { blocks: [{ text }], reward: null, finished: false },
      })),
      ...expressions.slice(3).map(() => refused),
    ]);
  });
});

describe('the example of an adventure', () => {
  it('can be won, with a reward for every step that brings it on', async () => {
    const choice = { split: 'test', index: 0 };
    const won = (await inNode(
      ADVENTURE,
      play(
        choice,
        ...([['look'], ['go', { direction: 'east' }], ['take'], ['go', { direction: 'west' }]] as const),
        ...([
          ['answer_riddle', { answer: 'gold' }],
          ['answer_riddle', { answer: 'joy' }],
        ] as const),
        ...([
          ['go', { direction: 'north' }],
          ['go', { direction: 'north' }],
        ] as const),
      ),
    )) as Played;
    expect(rewards(won)).toEqual([null, null, 0.25, null, 0, 0.25, null, 0.5]);
    expect(ends(won)).toEqual([false, false, false, false, false, false, false, true]);
    expect(won.tools).toEqual(['go', 'look', 'take', 'answer_riddle', 'give_up']);
  });

  it('can be lost, and says what does not work', async () => {
    const there = Array.from({ length: 12 }, (_, i) => ['go', { direction: i % 2 === 0 ? 'north' : 'south' }] as const);
    const lost = (await inNode(
      ADVENTURE,
      play(
        { split: 'train', index: 0 },
        ['go', { direction: 'east' }],
        ['take'],
        ['go', { direction: 'west' }],
        ...there,
      ),
    )) as Played;
    expect(lost.outcomes.slice(0, 3).map(({ error }) => error)).toEqual([
      'The sea covers the causeway.',
      'There is nothing to take.',
      'There is no way west.',
    ]);
    expect(lost.outcomes.at(-1)?.output).toMatchObject({ reward: 0, finished: true });
    expect(ends(lost).slice(3, -1)).not.toContain(true);
    expect(lost.tools).toEqual(['go', 'look', 'take', 'give_up', 'wait_for_ebb']);
  });

  it('is not over at the goal with empty hands', async () => {
    const north = ['go', { direction: 'north' }] as const;
    const calls = [['answer_riddle', { answer: 'joy' }], north, north, ['give_up']] as const;
    const early = (await inNode(ADVENTURE, play({ split: 'test', index: 0 }, ...calls))) as Played;
    expect(rewards(early)).toEqual([0.25, null, null, 0]);
    expect(ends(early)).toEqual([false, false, false, true]);
  });

  it('shows a map that is a whole PNG', async () => {
    const { prompt } = (await inNode(ADVENTURE, play({ split: 'train', index: 0 }))) as Played;
    const bytes = Buffer.from(prompt[1]?.data ?? '', 'base64');
    expect(bytes.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
    const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    expect([width, height]).toEqual([72, 48]);
    const length = bytes.readUInt32BE(33);
    const pixels = inflateSync(bytes.subarray(41, 41 + length));
    expect(pixels).toHaveLength((width + 1) * height);
    const at = (x: number, y: number): unknown => pixels[y * (width + 1) + 1 + x];
    expect([at(12, 36), at(12, 12), at(60, 36), at(51, 27)]).toEqual([0, 128, 255, 128]);
  });

  // The process ends when nothing is left to wait for: a tool that did not listen would keep it for an hour.
  it('stops waiting when its signal says so', async () => {
    const body = `
      const task = structuredClone(await environments[0].task('train', 0));
      task.gate.tide.seconds = 3_600;
      const episode = await environments[0].open({ ...request(), choice: { task } }, signal);
      const stop = new AbortController();
      const waiting = episode.call({ name: 'wait_for_ebb', input: {}, taskId: 't', signal: stop.signal });
      stop.abort(new Error('time is over'));
      return [episode.timeLimitMs('wait_for_ebb'), await waiting.catch(({ message }) => message)];`;
    expect(await inNode(ADVENTURE, body)).toEqual([3_610_000, 'The operation was aborted']);
  });

  it('refuses a task without its rooms', async () => {
    const body = `
      const task = await environments[0].task('train', 0);
      const told = (choice) => environments[0].check(choice).then(() => 'fine', ({ message }) => message);
      return [await told({ task }), await told({ task: { ...task, goal: 'moon' } }), await told({ task: { ...task, rooms: 1 } })];`;
    expect(await inNode(ADVENTURE, body)).toEqual([
      'fine',
      'The task cannot be used: start and goal must be rooms.',
      'The task cannot be used: rooms must be object.',
    ]);
  });
});
