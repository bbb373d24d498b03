import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/config.ts';
import { makeDirectory } from '../support/directory.ts';
import { fencesIn } from '../support/fences.ts';
import { inNode } from './module/in-node.ts';

const FENCES = fencesIn(join(__dirname, '../../docs/ENVIRONMENTS.md'));

const shown = (heading: string, name: string): string => {
  const found = FENCES.find((fence) => fence.heading === heading && fence.name === name);
  if (!found) throw new Error(`The page shows no ${name} under ${heading}.`);
  return found.code;
};

describe('the example of an MCP server in the documentation', () => {
  const NOTES = join(__dirname, '../../environments/notes');
  const file = (name: string): string => readFileSync(join(NOTES, name), 'utf8');

  it('is the one in its folder, which other tests run', () => {
    expect(parse(shown('MCP servers', 'notes/sluice.yaml'))).toEqual(parse(file('sluice.yaml')));
    expect(file('train.jsonl').split('\n')).toContain(shown('MCP servers', 'notes/train.jsonl').trim());
  });
});

describe('the example of a module in the documentation', () => {
  const directory = makeDirectory();
  const file = directory.write('capitals.js', shown('Modules', 'capitals.js'));
  directory.write('sluice.yaml', shown('Modules', 'sluice.yaml'));
  afterAll(() => directory.remove());

  it('is found by the settings beside it', () => {
    const { config } = loadConfig({ env: {}, directory: directory.path });
    expect(config.ors.environments).toEqual([{ module: file, maxSessions: 500, callTimeoutSeconds: 30 }]);
  });

  it('does what the page says', async () => {
    const played = await inNode(
      file,
      `const [capitals] = environments;
       const play = async (...cities) => {
         const episode = await capitals.open(request('test', 0), signal);
         const outcomes = [];
         for (const city of cities) outcomes.push(await episode.call({ name: 'answer', input: { city }, taskId: 't', signal }));
         return { prompt: await episode.prompt(signal), outcomes };
       };
       return {
         name: capitals.name,
         splits: await capitals.splits(),
         train: await capitals.tasks('train'),
         played: [await play('Lima'), await play('', 'Rome', 'Oslo'), await play(7)],
       };`,
    );
    const prompt = [
      { text: 'What is the capital of Peru? Answer with the tool "answer".', detail: null, type: 'text' },
    ];
    const output = (text: string, reward: number | null, finished: boolean, metadata: object | null = null) => ({
      ok: true,
      output: { blocks: [{ text, detail: null, type: 'text' }], metadata, reward, finished },
    });
    expect(played).toEqual({
      name: 'capitals',
      splits: [
        { name: 'train', type: 'train' },
        { name: 'test', type: 'test' },
      ],
      train: [
        { country: 'France', capital: 'Paris' },
        { country: 'Kenya', capital: 'Nairobi' },
      ],
      played: [
        { prompt, outcomes: [output('Right.', 1, true)] },
        {
          prompt,
          outcomes: [
            { ok: false, error: 'The answer is empty.' },
            output('Wrong. Try again.', null, false),
            output('Wrong.', 0, true, { expected: 'Lima' }),
          ],
        },
        {
          prompt,
          outcomes: [
            { ok: false, error: 'Tool input validation error: city must be string.', reason: 'input_validation' },
          ],
        },
      ],
    });
  });
});
