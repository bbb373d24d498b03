import { defineEnvironment, type EnvironmentDefinition } from '../../../src/environments/module/define-environment.ts';
import { loadEnvironmentModule } from '../../../src/environments/module/environment-module.ts';
import { makeDirectory } from '../../support/directory.ts';
import { inNode } from './in-node.ts';

const directory = makeDirectory();
const path = directory.write('mine.js', '');
afterAll(() => directory.remove());

const whole: EnvironmentDefinition = {
  name: 'Lab',
  splits: ['train'],
  tasks: { train: [{}] },
  tools: [{ name: 'look', description: 'Looks.', run: () => 'Nothing.' }],
  prompt: () => 'Look.',
};

/** The environments of a module that exports this. */
const loaded = (exported: Record<string, unknown>, name?: string) =>
  loadEnvironmentModule(path, async () => exported, name === undefined ? {} : { name });

const changed = (other: Record<string, unknown>) => ({ lab: defineEnvironment({ ...whole, ...other } as never) });

describe('a module with environments', () => {
  it('may export several, by any name or in a list, each once', async () => {
    const lab = defineEnvironment(whole);
    const second = defineEnvironment({ ...whole, name: 'second' });
    const environments = await loaded({ default: lab, all: [lab, second], tool: whole, other: 7, none: null });
    expect(environments.map(({ name, kind }) => [name, kind])).toEqual([
      ['lab', 'module'],
      ['second', 'module'],
    ]);
  });

  it('knows the types of splits', async () => {
    const splits = ['train', 'validation', 'test', 'hard', { name: 'easy', type: 'train' }];
    const [lab] = await loaded(changed({ splits, tasks: { count: () => 0, get: () => ({}) } }));
    expect(await lab?.splits()).toEqual([
      { name: 'train', type: 'train' },
      { name: 'validation', type: 'validation' },
      { name: 'test', type: 'test' },
      { name: 'hard', type: 'validation' },
      { name: 'easy', type: 'train' },
    ]);
  });

  it('may be given another name if it exports one environment', async () => {
    expect((await loaded({ lab: defineEnvironment(whole) }, 'Other')).map(({ name }) => name)).toEqual(['other']);
    const two = { a: defineEnvironment(whole), b: defineEnvironment({ ...whole, name: 'b' }) };
    await expect(loaded(two, 'other')).rejects.toThrow('It exports 2 environments, which cannot all be called other.');
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['exports none', { lab: whole }, 'It exports nothing that defineEnvironment has made.'],
    [
      'has two of a name, whatever their case',
      { a: defineEnvironment(whole), b: defineEnvironment({ ...whole, name: 'LAB' }) },
      'It has two environments called lab.',
    ],
    ['has no tools', changed({ tools: [] }), 'Lab has no tools.'],
    ['does not speak of tools', changed({ tools: undefined }), 'Lab has no tools.'],
    ['has no splits', changed({ splits: [] }), 'Lab has no splits.'],
    ['has a split twice', changed({ splits: ['train', 'train'] }), 'Lab has two splits called train.'],
    ['has a split without a name', changed({ splits: [''] }), 'A split is a name, or { name, type }.'],
    [
      'has a split of another type',
      changed({ splits: [{ name: 'train', type: 'dev' }] }),
      'The type of the split train must be one of train, validation, test.',
    ],
    [
      'has a wrong name',
      changed({ name: 'a/b' }),
      `An environment's name has letters, digits, ".", "_" and "-", not "a/b".`,
    ],
    [
      'has no name',
      changed({ name: undefined }),
      `An environment's name has letters, digits, ".", "_" and "-", not nothing.`,
    ],
    ['has no prompt', changed({ prompt: undefined }), 'Lab has no function "prompt".'],
    ['has a setup that is none', changed({ setup: {} }), 'setup of Lab must be a function, not an object.'],
    ['has something that nobody knows', changed({ onSetup: () => {} }), 'Lab has onSetup, which is not known.'],
    ['has a schema that is none', changed({ taskSchema: { type: 'thing' } }), 'The schema cannot be used: '],
    [
      'has a tool without a function',
      changed({ tools: [{ name: 'a', description: '' }] }),
      'The tool a has no function "run".',
    ],
    [
      'has a tool with a schema elsewhere',
      changed({ tools: [{ name: 'a', description: '', run: () => '', parameters: {} }] }),
      'The tool a has parameters, which is not known.',
    ],
    [
      'has a tool with a wrong schema',
      changed({ tools: [{ name: 'a', description: '', run: () => '', input: { type: 'object', required: 'x' } }] }),
      'The input of the tool a: The schema cannot be used: ',
    ],
  ])('is refused if it %s', async (_, exported, reason) => {
    await expect(loaded(exported)).rejects.toThrow(`The environments of ${path} cannot be used: ${reason}`);
  });

  it('is refused in the same words if it cannot be loaded at all', async () => {
    const broken = loadEnvironmentModule(path, () => Promise.reject(new SyntaxError('Unexpected token')));
    await expect(broken).rejects.toThrow(`The environments of ${path} cannot be used: Unexpected token`);
    const missing = loadEnvironmentModule(`${path}.none`, async () => ({}));
    await expect(missing).rejects.toThrow(`The environments of ${path}.none cannot be used: `);
  });

  it('finds this package by its name, wherever it lies', async () => {
    const file = directory.write(
      'elsewhere/lab.js',
      `import { defineEnvironment, defineTool, fail, image, text } from 'sluice';
       export const lab = defineEnvironment({
         name: 'lab', splits: ['train'], tasks: { train: [{}] }, prompt: () => [text('a'), image('AAEC', 'image/png')],
         tools: [defineTool({ name: 'no', description: 'Fails.', run: () => fail('No.') })],
       });`,
    );
    const seen = await inNode(
      file,
      `const [lab] = environments;
       const episode = await lab.open(request('train', 0), signal);
       return [await episode.prompt(signal), await episode.call({ name: 'no', input: {}, taskId: 't', signal })];`,
    );
    expect(seen).toMatchObject([[{ text: 'a' }, { data: 'AAEC' }], { ok: false, error: 'No.' }]);
  });
});
