import { setImmediate as turn } from 'node:timers/promises';
import { notListed } from '../../../src/environments/environment.ts';
import { Tasks } from '../../../src/environments/module/tasks.ts';

const SPLITS = [
  { name: 'train', type: 'train' },
  { name: 'hard', type: 'validation' },
] as const;

const counted = (count: number, list?: boolean) => {
  const asked: number[] = [];
  const source = {
    count: () => count,
    get: async (split: string, index: number) => {
      asked.push(index);
      return { split, index };
    },
    ...(list !== undefined && { list }),
  };
  return { asked, tasks: new Tasks(source, SPLITS, 'lab') };
};

describe('tasks by index', () => {
  it('are made when they are asked for, and only those', async () => {
    const { asked, tasks } = counted(1_000_000_000);
    expect(await tasks.count('train')).toBe(1_000_000_000);
    await tasks.check('train', 999_999_999);
    expect(asked).toEqual([]);
    expect(await tasks.task('hard', 999_999_999)).toEqual({ split: 'hard', index: 999_999_999 });
    expect(await tasks.range('train', 5, 8)).toEqual([5, 6, 7].map((index) => ({ split: 'train', index })));
    expect(await tasks.range('train', 8, 5)).toEqual([]);
    expect(asked).toEqual([999_999_999, 5, 6, 7]);
  });

  it('are listed up to ten thousand, unless the environment decides otherwise', async () => {
    const listed = async (count: number, list?: boolean) => (await counted(count, list).tasks.all('train')).length;
    expect(await listed(10_000)).toBe(10_000);
    await expect(listed(10_001)).rejects.toThrow(notListed());
    expect(await listed(10_001, true)).toBe(10_001);
    await expect(listed(1, false)).rejects.toThrow(notListed());
  });

  it('keep their order, and let others have their turn', async () => {
    let turns = 0;
    let over = false;
    const clock = (async () => {
      for (; !over; turns++) await turn();
    })();
    const all = await counted(1_000).tasks.all('train');
    over = true;
    await clock;
    expect(all.map(({ index }) => index)).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    expect(turns).toBeGreaterThanOrEqual(5);
  });

  it.each([-1, 3, 1.5, Number.NaN])('do not have the index %p', async (index) => {
    const { tasks } = counted(3);
    await expect(tasks.check('train', index)).rejects.toMatchObject({
      code: 'invalid_index',
      message: 'Invalid index',
    });
    await expect(tasks.task('train', index)).rejects.toMatchObject({ code: 'invalid_index' });
  });

  it.each(['nope', '', 'constructor', 'Train'])('do not have the split %p', async (split) => {
    const { tasks } = counted(3);
    const refused = { code: 'invalid_split', message: 'Invalid split' };
    await expect(tasks.count(split)).rejects.toMatchObject(refused);
    await expect(tasks.check(split, 0)).rejects.toMatchObject(refused);
    await expect(tasks.task(split, 0)).rejects.toMatchObject(refused);
    await expect(tasks.all(split)).rejects.toMatchObject(refused);
    await expect(tasks.range(split, 0, 0)).rejects.toMatchObject(refused);
  });

  it.each([-1, 1.5, Number.NaN, '3', undefined])('cannot be %p in number', async (count) => {
    const tasks = new Tasks({ count: () => count as number, get: () => ({}) }, SPLITS, 'lab');
    await expect(tasks.count('train')).rejects.toMatchObject({ code: 'failed' });
  });

  it.each<[unknown, string]>([
    [undefined, 'it is nothing, not an object'],
    [[], 'it is a list, not an object'],
    [{ at: new Date(0) }, 'task.at is an object of a class, not plain data'],
    [{ n: [1n] }, 'task.n[0] is a bigint, which JSON cannot say'],
  ])('are JSON objects: %p is none', async (task, reason) => {
    const tasks = new Tasks({ count: () => 1, get: () => task as never }, SPLITS, 'lab');
    await expect(tasks.task('train', 0)).rejects.toThrow(`The task 0 of the split train cannot be used: ${reason}.`);
  });
});

describe('tasks in lists', () => {
  it('are a list, or what gives one, which is asked once', async () => {
    let asked = 0;
    const hard = async () => [{ n: ++asked }];
    const tasks = new Tasks({ train: [{ n: 0 }, { n: 7 }], hard }, SPLITS, 'lab');
    expect(asked).toBe(0);
    expect(await tasks.all('train')).toEqual([{ n: 0 }, { n: 7 }]);
    expect(await Promise.all([tasks.all('hard'), tasks.task('hard', 0), tasks.count('hard')])).toEqual([
      [{ n: 1 }],
      { n: 1 },
      1,
    ]);
    expect(asked).toBe(1);
  });

  it('are asked for again if that has failed', async () => {
    let asked = 0;
    const hard = () => {
      if (asked++ === 0) throw new Error('no disk');
      return [{}];
    };
    const tasks = new Tasks({ train: [], hard }, SPLITS, 'lab');
    await expect(tasks.count('hard')).rejects.toThrow('no disk');
    expect(await tasks.count('hard')).toBe(1);
  });

  it.each<[string, unknown, string]>([
    ['a split has none', { train: [] }, 'The split hard of lab has no tasks.'],
    [
      'there are some for no split',
      { train: [], hard: [], easy: [] },
      'lab has tasks for easy, which is not one of its splits.',
    ],
    ['they are no list', { train: {}, hard: [] }, 'The tasks of train must be a list or a function, not an object.'],
    ['they are missing', undefined, 'The tasks of lab must be { count, get }, or lists by split.'],
    [
      'nobody can say whether they are listed',
      { count: () => 1, get: () => ({}), list: 'no' },
      'list of the tasks of lab must be true or false, not a string.',
    ],
  ])('are refused at once if %s', (_, given, message) => {
    expect(() => new Tasks(given as never, SPLITS, 'lab')).toThrow(message);
  });
});
