import { appendFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import fc from 'fast-check';
import { type JsonlLimits, JsonlTasks } from '../../../src/environments/tasks/jsonl-tasks.ts';
import { LineIndex } from '../../../src/environments/tasks/line-index.ts';
import { makeDirectory, type TestDirectory } from '../../support/directory.ts';

let directory: TestDirectory;
beforeEach(() => {
  directory = makeDirectory();
});
afterEach(() => directory.remove());

const lines = (count: number): string => Array.from({ length: count }, (_, n) => `{"n":${n}}\n`).join('');
const tasksOf = (content: string, limits?: Partial<JsonlLimits>): JsonlTasks =>
  new JsonlTasks({ train: directory.write('train.jsonl', content) }, limits);

describe('tasks in a file of JSON lines', () => {
  it('are counted, and read one by one and in ranges', async () => {
    const tasks = tasksOf(lines(5));
    expect(await tasks.count('train')).toBe(5);
    expect(await tasks.task('train', 3)).toEqual({ n: 3 });
    expect(await tasks.range('train', 1, 4)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(await tasks.range('train', 3, 99)).toEqual([{ n: 3 }, { n: 4 }]);
    expect(await tasks.range('train', 4, 2)).toEqual([]);
    expect(await tasks.range('train', 9, 12)).toEqual([]);
    expect(await tasks.all('train')).toHaveLength(5);
  });

  it('have splits in the order of the settings, each with the type of its name', () => {
    expect(new JsonlTasks({ hard: 'a', test: 'b', train: 'c', validation: 'd' }).splits).toEqual([
      { name: 'hard', type: 'validation' },
      { name: 'test', type: 'test' },
      { name: 'train', type: 'train' },
      { name: 'validation', type: 'validation' },
    ]);
  });

  it('are not found in a split or at an index that does not exist', async () => {
    const tasks = tasksOf(lines(2));
    await expect(tasks.count('nope')).rejects.toMatchObject({ code: 'invalid_split', message: 'Invalid split' });
    await expect(tasks.all('constructor')).rejects.toMatchObject({ code: 'invalid_split' });
    await expect(tasks.task('train', 2)).rejects.toMatchObject({ code: 'invalid_index', message: 'Invalid index' });
    expect(await tasksOf('').count('train')).toBe(0);
  });

  it('are those that a plain reading finds, whatever the line ends, blank lines and characters', async () => {
    const task = fc.record({ text: fc.string({ unit: 'grapheme' }), n: fc.integer() }).map((t) => JSON.stringify(t));
    const line = fc.oneof({ weight: 3, arbitrary: task }, fc.constantFrom('', ' ', '\t '));
    const whole = fc.tuple(
      fc.array(line, { maxLength: 20 }),
      fc.constantFrom('\n', '\r\n'),
      fc.boolean(),
      fc.boolean(),
    );
    await fc.assert(
      fc.asyncProperty(whole, async ([written, lineEnd, ended, marked]) => {
        const content = `${marked ? '\uFEFF' : ''}${written.join(lineEnd)}${ended ? lineEnd : ''}`;
        const expected = written.filter((one) => one.trim() !== '').map((one) => JSON.parse(one) as unknown);
        const tasks = tasksOf(content);
        expect(await tasks.count('train')).toBe(expected.length);
        expect(await tasks.all('train')).toEqual(expected);
        for (const [i, one] of expected.entries()) expect(await tasks.task('train', i)).toEqual(one);
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    ['{"n":0}\n{"n":\n{"n":2}\n', 1, 'Line 2 of train.jsonl is not JSON.'],
    ['\n{"n":0}\n\n\n[1]\n', 1, 'Line 5 of train.jsonl is not a JSON object.'],
    ['\n\n"a"', 0, 'Line 3 of train.jsonl is not a JSON object.'],
  ])('are told of by file and line if one is malformed: %j', async (content, index, message) => {
    const tasks = tasksOf(content);
    await expect(tasks.task('train', index)).rejects.toMatchObject({ code: 'failed', message });
    await expect(tasks.all('train')).rejects.toMatchObject({ message });
  });

  it('that are malformed do not stand in the way of the others', async () => {
    expect(await tasksOf('{"n":0}\nnonsense\n{"n":2}\n').task('train', 2)).toEqual({ n: 2 });
  });

  it('are read across the pieces in which a large file is read', async () => {
    const text = 'ü'.repeat(300_000);
    const tasks = tasksOf(Array.from({ length: 9 }, (_, n) => `${JSON.stringify({ n, text })}\n`).join(''));
    expect(await tasks.count('train')).toBe(9);
    expect(await tasks.task('train', 8)).toEqual({ n: 8, text });
    expect(await tasks.range('train', 1, 8)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => ({ n, text })));
  });

  it('may be tiny and very many', async () => {
    const tasks = tasksOf('{}\n'.repeat(400_000));
    expect(await tasks.range('train', 0, 400_000)).toHaveLength(400_000);
  });

  it('are read by their bytes alone', async () => {
    const path = directory.write('large.jsonl', lines(10_000));
    const file = await open(path);
    const index = await LineIndex.read(file, statSync(path).size);
    await file.close();
    expect(index.bytes(5_000, 5_001)).toEqual({ start: lines(5_000).length, end: lines(5_001).length });
  });

  it('are listed only while they are few and small', async () => {
    const many = tasksOf(lines(4), { maxListed: 3 });
    await expect(many.all('train')).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('num_tasks'),
    });
    expect(await many.range('train', 0, 4)).toHaveLength(4);
    const large = tasksOf(lines(4), { maxBytes: 20, maxTaskBytes: 8 });
    await expect(large.all('train')).rejects.toMatchObject({ code: 'unsupported' });
    await expect(large.range('train', 0, 4)).rejects.toMatchObject({
      code: 'unsupported',
      message: 'These tasks are too large to be given at once: ask for fewer.',
    });
    expect(await large.range('train', 0, 2)).toHaveLength(2);
  });

  it('may each be only so large', async () => {
    const tasks = tasksOf(`{"n":0}\n{"text":"${'x'.repeat(100)}"}\n`, { maxTaskBytes: 50 });
    expect(await tasks.task('train', 0)).toEqual({ n: 0 });
    await expect(tasks.task('train', 1)).rejects.toMatchObject({
      message: 'Line 2 of train.jsonl is longer than 50 bytes.',
    });
  });

  it('are found anew when the file has grown, was replaced or was written over', async () => {
    const tasks = tasksOf(lines(2));
    const path = directory.write('train.jsonl', lines(2));
    expect(await tasks.count('train')).toBe(2);
    appendFileSync(path, '{"n":"new"}\n');
    expect(await tasks.task('train', 2)).toEqual({ n: 'new' });
    renameSync(directory.write('other.jsonl', '{"other":1}\n'), path);
    expect(await tasks.all('train')).toEqual([{ other: 1 }]);
    writeFileSync(path, '{}\n{"b":1}\n');
    utimesSync(path, 1, 1); // the same size, and no doubt about the time
    expect(await tasks.all('train')).toEqual([{}, { b: 1 }]);
  });

  it('are found once for all who ask at the same time, and not again', async () => {
    const read = jest.spyOn(LineIndex, 'read');
    const tasks = tasksOf(lines(100));
    const found = await Promise.all([0, 1, 2, 3].map((n) => tasks.task('train', n)));
    expect(found).toEqual([0, 1, 2, 3].map((n) => ({ n })));
    await tasks.count('train');
    expect(read).toHaveBeenCalledTimes(1);
    read.mockRestore();
  });

  it('cannot be read from a file that is gone, and can when it is back', async () => {
    const tasks = new JsonlTasks({ train: `${directory.path}/late.jsonl` });
    await expect(tasks.count('train')).rejects.toMatchObject({
      code: 'unavailable',
      message: 'late.jsonl cannot be read (ENOENT).',
    });
    directory.write('late.jsonl', lines(1));
    expect(await tasks.count('train')).toBe(1);
  });
});
