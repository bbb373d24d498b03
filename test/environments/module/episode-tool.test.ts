import { getEventListeners } from 'node:events';
import { defineTool, fail } from '../../../src/index.ts';
import { call, FIRST, never, request, type Sum, sums, textsOf, tool } from './sums.ts';

describe('the tools of an environment', () => {
  it('are listed with shared ones first, and hidden ones only in an episode', async () => {
    const environment = sums({
      tools: [
        tool('z', () => ''),
        tool('hidden', () => 'h', { shared: false }),
        tool('b', () => '', { input: { type: 'object' } }),
      ],
      taskTools: ({ task }: { task: Sum }) => [tool(`add_${task.a}`, () => 'own')],
    });
    expect(await environment.tools()).toEqual([
      { name: 'b', description: 'b.', input_schema: { type: 'object' } },
      { name: 'z', description: 'z.', input_schema: null },
    ]);
    const episode = await environment.open(FIRST, never);
    expect((await episode.tools(never)).map(({ name }) => name)).toEqual(['b', 'z', 'add_1', 'hidden']);
    expect(textsOf(await episode.call(call('hidden')))).toEqual(['h']);
    expect(textsOf(await episode.call(call('add_1', { any: 'thing' })))).toEqual(['own']);
    expect((await environment.tools()).map(({ name }) => name)).toEqual(['b', 'z']);
  });

  it('may be tools of the gateway, which know nothing of rewards', async () => {
    const environment = sums({
      tools: [
        defineTool({
          name: 'facts',
          description: 'Facts.',
          run: (_, { principal, secrets }) => ({ principal, reward: secrets.K }),
        }),
        defineTool({ name: 'broken', description: 'Fails.', timeoutSeconds: 5, run: () => fail('It is broken.') }),
        defineTool({
          name: 'media',
          description: 'Shows.',
          run: () => ({
            isError: false,
            content: [
              { type: 'image', data: 'AAEC', mimeType: 'image/png' },
              { type: 'audio', data: 'AAEC', mimeType: 'audio/wav' },
              { type: 'link', uri: 'https://a.example', name: 'a' },
            ],
          }),
        }),
      ],
    });
    const episode = await environment.open(request({ split: 'train', index: 0 }, { K: 'v' }), never);
    expect(await episode.call(call('facts'))).toMatchObject({
      output: { blocks: [{ text: '{"principal":"ada","reward":"v"}' }], reward: null, finished: false },
    });
    expect(await episode.call(call('broken'))).toEqual({ ok: false, error: 'It is broken.' });
    expect(await episode.call(call('media'))).toMatchObject({
      output: {
        blocks: [{ data: 'AAEC' }, { text: '[audio, audio/wav, 3 bytes]' }, { text: '[link to https://a.example, a]' }],
      },
    });
    expect(episode.timeLimitMs?.('facts')).toBe(60_000);
    expect(episode.timeLimitMs?.('broken')).toBe(5_000);
  });

  it('of the gateway keep their limit of calls at the same time, over all episodes', async () => {
    let running = 0;
    let most = 0;
    const ends: (() => void)[] = [];
    const slow = defineTool({
      ...{ name: 'slow', description: 'Slow.', concurrency: 1 },
      async run() {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => ends.push(resolve));
        running--;
        return 'ok';
      },
    });
    const environment = sums({ tools: [], taskTools: () => [slow] });
    const calls = await Promise.all(
      [1, 2].map(async () => {
        const episode = await environment.open(FIRST, never);
        return { done: episode.call(call('slow')) };
      }),
    );
    while (ends.length === 0) await Promise.resolve();
    ends.shift()?.();
    await Promise.race(calls.map(({ done }) => done));
    while (ends.length === 0) await Promise.resolve();
    ends.shift()?.();
    await Promise.all(calls.map(({ done }) => done));
    expect(most).toBe(1);
  });

  it('cannot be ones that somebody has to agree to', () => {
    const guarded = defineTool({ name: 'pay', description: 'Pays.', approval: 'always', run: () => 'Paid.' });
    expect(() => sums({ tools: [guarded] })).toThrow('Nobody can agree to a call of the tool pay in an episode.');
  });

  it('say themselves how long they may take', async () => {
    const environment = sums({
      tools: [
        tool('quick', () => '', { timeoutSeconds: 1.5 }),
        tool('endless', () => '', { timeoutSeconds: 0 }),
        tool('other', () => ''),
      ],
    });
    const episode = await environment.open(FIRST, never);
    expect(['quick', 'endless', 'other', 'none'].map((name) => episode.timeLimitMs?.(name))).toEqual([
      1_500,
      0,
      undefined,
      undefined,
    ]);
  });

  it('answer a model that asks for one that is not there', async () => {
    const episode = await sums().open(FIRST, never);
    for (const name of ['nope', 'constructor', '__proto__', '']) {
      expect(await episode.call(call(name))).toEqual({
        ok: false,
        error: `'${name}' is not a valid tool`,
        reason: 'not_found',
      });
    }
  });

  it('are not run with an input that does not fit, which is not repeated', async () => {
    let ran = 0;
    const input = { type: 'object', properties: { n: { type: 'integer' }, word: { enum: ['a'] } }, required: ['n'] };
    const environment = sums({
      tools: [
        tool('count', () => `${++ran}`, { input }),
        tool('strict', () => '', { input: { ...input, additionalProperties: false } }),
      ],
    });
    const episode = await environment.open(FIRST, never);
    const wrong = await episode.call(call('count', { n: 'sk-secret', word: 'sk-secret' }));
    expect(wrong).toEqual({
      ok: false,
      error: 'Tool input validation error: n must be integer; word must be one of ["a"].',
      reason: 'input_validation',
    });
    expect(await episode.call(call('count'))).toMatchObject({ error: 'Tool input validation error: n is missing.' });
    expect(ran).toBe(0);
    expect(textsOf(await episode.call(call('count', { n: 1, extra: true })))).toEqual(['1']);
    expect(await episode.call(call('strict', { n: 1, extra: true }))).toMatchObject({ reason: 'input_validation' });
  });

  it('may fail in words for the model, and what they throw stays thrown', async () => {
    const thrown = new RangeError('out of bounds');
    const environment = sums({
      tools: [
        tool('fails', () => fail('Try again.')),
        tool('throws', () => {
          throw thrown;
        }),
        tool('rejects', () => Promise.reject(thrown)),
        tool('nonsense', () => ({ reward: Number.NaN })),
      ],
    });
    const episode = await environment.open(FIRST, never);
    expect(await episode.call(call('fails'))).toEqual({ ok: false, error: 'Try again.' });
    await expect(episode.call(call('throws'))).rejects.toBe(thrown);
    await expect(episode.call(call('rejects'))).rejects.toBe(thrown);
    await expect(episode.call(call('nonsense'))).rejects.toThrow(
      'The answer of the tool nonsense cannot be used: reward must be a finite number or null, not NaN.',
    );
  });

  it('end when they have really ended, also behind an aborted signal, on which nothing is left', async () => {
    const stop = new AbortController();
    let end: (text: string) => void = () => {};
    const deaf = new Promise<string>((resolve) => {
      end = resolve;
    });
    const environment = sums({ tools: [tool('deaf', () => deaf), tool('quick', () => 'ok')] });
    const episode = await environment.open(FIRST, never);
    await episode.call(call('quick', {}, stop.signal));
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
    let over = false;
    const waiting = episode.call(call('deaf', {}, stop.signal)).then(() => {
      over = true;
    });
    stop.abort(new Error('time is over'));
    await new Promise(setImmediate);
    expect(over).toBe(false);
    end('late');
    await waiting;
  });

  it('have names of their own, those of a task too', async () => {
    expect(() => sums({ tools: [tool('a', () => ''), tool('a', () => '')] })).toThrow('There are two tools called a.');
    const ended: string[] = [];
    const environment = sums({
      tools: [tool('a', () => ''), tool('b', () => '', { shared: false })],
      taskTools: () => [tool('b', () => '')],
      teardown: () => ended.push('teardown'),
    });
    await expect(environment.open(FIRST, never)).rejects.toMatchObject({
      code: 'failed',
      message: 'There are two tools called b.',
    });
    expect(ended).toEqual(['teardown']);
  });
});
