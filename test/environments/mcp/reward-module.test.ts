import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeDirectory, type TestDirectory } from '../../support/directory.ts';

const JUDGE = join(__dirname, '../../fixtures/environments/judge.js');

describe('a file with a reward', () => {
  let directory: TestDirectory;
  beforeEach(() => {
    directory = makeDirectory();
  });
  afterEach(() => directory.remove());

  /** What the built code makes of it, in a process of its own. */
  const judged = async (content: string): Promise<string> => {
    const path = directory.write('judge.mjs', content);
    const { stdout } = await promisify(execFile)(process.execPath, [JUDGE, path]);
    return stdout.trim().replace(path, 'FILE');
  };

  it('imports from this package by its name, wherever it lies', async () => {
    const file = `
      import { defineReward } from 'sluice';
      export default defineReward(async ({ input, task }) => ({ reward: input.answer === task.answer ? 1 : 0 }));`;
    expect(JSON.parse(await judged(file))).toEqual({ reward: 1, metadata: null });
  });

  it('that cannot be loaded is one sentence', async () => {
    expect(await judged('throw new Error("broken");')).toBe('The reward of FILE cannot be used: broken');
    expect(await judged('export const a = 1;')).toBe(
      'The reward of FILE cannot be used: it exports nothing that defineReward has made.',
    );
  });
});
