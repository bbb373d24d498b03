import { setTimeout as sleep } from 'node:timers/promises';
import { ToolRegistry } from '../../src/tools/registry.ts';
import { type Progress, ToolError, textResult } from '../../src/tools/tool.ts';
import { makeTool, TestProvider, textOf } from './tools.ts';

const registryOf = (...providers: TestProvider[]) => {
  const warnings: string[] = [];
  const calls: string[] = [];
  const registry = new ToolRegistry({
    warn: (message) => warnings.push(message),
    observe: { called: (tool, outcome) => calls.push(`${tool} ${outcome}`) },
  });
  for (const provider of providers) registry.add(provider);
  return { registry, warnings, calls };
};

const ann = { principal: 'ann' };

/** Resolves from outside. */
const gate = (): { open: () => void; opened: Promise<void> } => {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

describe('the tool registry', () => {
  it('calls a tool by its bare and by its full name', async () => {
    const { registry, calls } = registryOf(new TestProvider('one', [makeTool('echo')]));
    expect(textOf(await registry.call('echo', { a: 1 }, ann))).toBe('echo {"a":1}');
    expect(textOf(await registry.call('one.echo', {}, ann))).toBe('echo {}');
    await expect(registry.call('nothing', {}, ann)).rejects.toMatchObject({ code: 'not_found' });
    expect(calls).toEqual(['one.echo ok', 'one.echo ok']);
  });

  it('gives a bare name to the first source, and says so once', async () => {
    const first = new TestProvider('first', [makeTool('echo', { call: async () => textResult('first') })]);
    const second = new TestProvider('second', [makeTool('echo', { call: async () => textResult('second') })]);
    const { registry, warnings } = registryOf(first, second);
    expect(textOf(await registry.call('echo', {}, ann))).toBe('first');
    expect(textOf(await registry.call('first.echo', {}, ann))).toBe('first');
    expect(textOf(await registry.call('second.echo', {}, ann))).toBe('second');
    expect(registry.list().map(({ name }) => name)).toEqual(['echo', 'second.echo']);
    second.become([...second.tools(), makeTool('more')]);
    expect(warnings).toEqual(['Two tools are called "echo": it means first.echo; the other is second.echo.']);
    first.become([]);
    expect(textOf(await registry.call('echo', {}, ann))).toBe('second');
  });

  it('checks the input first; the message names the path', async () => {
    let ran = 0;
    const inputSchema = {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'array', items: { type: 'integer', minimum: 1 } } },
      required: ['city'],
      additionalProperties: false,
    };
    const call = async () => textResult(String(++ran));
    const { registry, calls } = registryOf(new TestProvider('x', [makeTool('weather', { inputSchema, call })]));
    for (const [input, message] of [
      [{}, 'Input of weather: city is missing.'],
      [{ city: 7 }, 'Input of weather: city must be string.'],
      [{ city: 'a', days: [1, 0, 'x'] }, 'Input of weather: days[1] must be >= 1; days[2] must be integer.'],
      [{ city: 'a', when: 1 }, 'Input of weather: when is not known.'],
      ['text', 'Input of weather: The input must be object.'],
      [null, 'Input of weather: The input must be object.'],
    ] as const) {
      await expect(registry.call('weather', input, ann)).rejects.toEqual(new ToolError('invalid_input', message));
    }
    expect(ran).toBe(0);
    await registry.call('weather', { city: 'a', days: [2] }, ann);
    expect(calls.at(-1)).toBe('x.weather ok');
  });

  it('tells of a tool whose schema cannot be used, when it is called', async () => {
    const { registry } = registryOf(new TestProvider('x', [makeTool('odd', { inputSchema: { type: 'nonsense' } })]));
    await expect(registry.call('odd', {}, ann)).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringContaining('odd: The schema cannot be used'),
    });
  });

  it('ends a call that takes too long, and tells the tool', async () => {
    let reason: unknown;
    const slow = makeTool('slow', {
      timeoutMs: 20,
      call: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason;
            reject(new Error('something else'));
          });
        }),
    });
    const deaf = makeTool('deaf', { timeoutMs: 10_000, call: () => new Promise(() => {}) });
    const { registry, calls } = registryOf(new TestProvider('x', [slow, deaf]));
    await expect(registry.call('slow', {}, ann)).rejects.toMatchObject({
      code: 'timeout',
      message: 'slow took longer than 0.02 s.',
    });
    expect(reason).toBeInstanceOf(ToolError);
    await expect(registry.call('deaf', {}, { ...ann, timeoutMs: 10 })).rejects.toMatchObject({ code: 'timeout' });
    expect(calls).toEqual(['x.slow timeout', 'x.deaf timeout']);
  });

  it('cancels a call, while it runs and while it waits', async () => {
    const { open, opened } = gate();
    const tool = makeTool('one', { concurrency: 1, call: () => opened.then(() => textResult('done')) });
    const { registry } = registryOf(new TestProvider('x', [tool]));
    const running = registry.call('one', {}, ann);
    const stop = new AbortController();
    const waiting = registry.call('one', {}, { ...ann, signal: stop.signal });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    await expect(registry.call('one', {}, { ...ann, signal: stop.signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
    open();
    expect(textOf(await running)).toBe('done');
    expect(textOf(await registry.call('one', {}, ann))).toBe('done');
  });

  it('runs as many at once as a tool and its source allow, in the order they came', async () => {
    let running = 0;
    let most = 0;
    const order: unknown[] = [];
    const call = async (input: Readonly<Record<string, unknown>>) => {
      most = Math.max(most, ++running);
      order.push(input.i);
      await sleep(1);
      running--;
      return textResult('');
    };
    const limited = new TestProvider('x', [makeTool('a', { concurrency: 2, call }), makeTool('b', { call })], 3);
    const { registry } = registryOf(limited);
    await Promise.all(Array.from({ length: 10 }, (_, i) => registry.call('a', { i }, ann)));
    expect(most).toBe(2);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    most = 0;
    await Promise.all(Array.from({ length: 10 }, (_, i) => registry.call('b', { i }, ann)));
    expect(most).toBe(3);
  });

  it('refuses a call when too many wait', async () => {
    const tool = makeTool('one', { concurrency: 1, call: () => new Promise(() => {}) });
    const { registry } = registryOf(new TestProvider('x', [tool]));
    const stop = new AbortController();
    const calls = Array.from({ length: 1_001 }, () => registry.call('one', {}, { ...ann, signal: stop.signal }));
    await expect(registry.call('one', {}, ann)).rejects.toMatchObject({ code: 'busy' });
    stop.abort();
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
  });

  it('passes on what a tool says of its progress, and who asked', async () => {
    const seen: Progress[] = [];
    let late: () => void = () => {};
    const tool = makeTool('steps', {
      call: async (_, { progress, principal, secrets }) => {
        progress({ progress: 1, total: 2 });
        progress({ progress: 2, total: 2, message: 'done' });
        late = () => progress({ progress: 3 });
        return textResult(`${principal} ${secrets.KEY}`);
      },
    });
    const { registry } = registryOf(new TestProvider('x', [tool]));
    const result = await registry.call('steps', {}, { ...ann, progress: (p) => seen.push(p), secrets: { KEY: 'k' } });
    expect(textOf(result)).toBe('ann k');
    expect(seen).toEqual([
      { progress: 1, total: 2 },
      { progress: 2, total: 2, message: 'done' },
    ]);
    late();
  });

  it('keeps apart a tool that says that it failed and one that throws', async () => {
    const says = makeTool('says', { call: async () => textResult('no luck', true) });
    const throws = makeTool('throws', { call: () => Promise.reject(new TypeError('bug')) });
    const { registry, calls } = registryOf(new TestProvider('x', [says, throws]));
    expect(await registry.call('says', {}, ann)).toMatchObject({ isError: true });
    await expect(registry.call('throws', {}, ann)).rejects.toMatchObject({ code: 'failed', message: 'bug' });
    expect(calls).toEqual(['x.says error', 'x.throws failed']);
  });

  it('takes other sources of a kind in the place of those it had', async () => {
    const { registry } = registryOf(new TestProvider('old', [makeTool('a')]));
    let changes = 0;
    registry.onChange(() => changes++);
    registry.replace('module', [new TestProvider('new', [makeTool('b')])]);
    expect(registry.list().map(({ fullName }) => fullName)).toEqual(['new.b']);
    expect(changes).toBe(1);
    await expect(registry.call('a', {}, ann)).rejects.toMatchObject({ code: 'not_found' });
  });
});
