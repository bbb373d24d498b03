import type { Episode } from '../../../src/environments/environment.ts';
import { defineReward, type RewardFunction, type RewardOptions } from '../../../src/environments/mcp/define-reward.ts';
import type { JsonObject } from '../../../src/tools/tool.ts';
import { eventually } from '../../streams/logs.ts';
import { HttpMcpServer, json } from '../../tools/mcp/http-server.ts';
import { isAlive, puppet, record } from '../../tools/mcp/room.ts';
import { call, Lab, type LabSettings, output, said } from './lab.ts';

jest.setTimeout(30_000);

let log: ReturnType<typeof record>;
let lab: Lab;
beforeEach(() => {
  log = record();
});
afterEach(async () => {
  await lab.stop();
  log.remove();
});

const begin = async (settings: LabSettings = {}, task: JsonObject = { prompt: 'p', answer: '3' }): Promise<Episode> => {
  lab = await Lab.open({ mcp: puppet({ log: log.path }) as JsonObject, ...settings });
  return lab.begin(task);
};
const calls = (): readonly string[] => log.lines().filter((line) => line.startsWith('call'));
const starts = (): number => log.lines().filter((line) => line.startsWith('start')).length;

describe('a call in an episode of an MCP server', () => {
  it('gives what the tool says, without a reward', async () => {
    expect(await call(await begin(), 'echo', { text: 'hello' })).toEqual(output('hello'));
  });

  it('of a tool that does not exist, or with input that does not fit, never reaches the server', async () => {
    const episode = await begin({ submit: true, tools: ['echo'] });
    expect(await call(episode, 'nope')).toEqual({
      ok: false,
      error: "'nope' is not a valid tool",
      reason: 'not_found',
    });
    expect(await call(episode, 'pid')).toMatchObject({ reason: 'not_found' }); // the server has it, the list has not
    expect(await call(episode, 'submit', { answer: 3 })).toEqual({
      ok: false,
      error: 'Tool input validation error: answer must be string.',
      reason: 'input_validation',
    });
    expect(calls()).toEqual([]);
  });

  it('that the tool says has failed is something for the model to read', async () => {
    expect(await call(await begin(), 'fail')).toEqual({ ok: false, error: 'it went wrong' });
  });

  it('that the server refuses is thrown, unless it was about the parameters', async () => {
    const episode = await begin();
    await expect(call(episode, 'refuse')).rejects.toMatchObject({
      code: 'failed',
      message: 'refuse: there is no such thing',
    });
    expect(await said(episode, 'echo', { text: 'still' })).toBe('still');
    await lab.stop();
    const server = await HttpMcpServer.start();
    server.answers.strict = (response, id) =>
      json(response, { jsonrpc: '2.0', id, error: { code: -32602, message: 'n must be even' } });
    expect(await call(await begin({ mcp: { url: server.url } }), 'strict')).toEqual({
      ok: false,
      error: 'Tool input validation error: strict: n must be even',
      reason: 'input_validation',
    });
    await server.stop();
  });

  it('hears of its end, and the episode goes on', async () => {
    const episode = await begin();
    const stop = new AbortController();
    const hanging = expect(call(episode, 'hang', {}, stop.signal)).rejects.toThrow('too late');
    await eventually(() => calls().includes('call hang'));
    stop.abort(new Error('too late'));
    await hanging;
    await eventually(() => log.lines().includes('cancelled'));
    expect(await said(episode, 'echo', { text: 'on' })).toBe('on');
    await expect(call(episode, 'echo', {}, stop.signal)).rejects.toThrow('too late');
  });

  it('waits for its turn where the server can only do so much at a time', async () => {
    const episode = await begin({ mcp: puppet({ log: log.path }, { concurrency: 1 }) as JsonObject });
    const stop = new AbortController();
    const first = call(episode, 'hang', {}, stop.signal).catch(() => 'stopped');
    await eventually(() => calls().length === 1);
    const second = said(episode, 'echo', { text: 'second' });
    expect(await said(await lab.begin(), 'echo', { text: 'another episode' })).toBe('another episode');
    expect(calls()).toEqual(['call hang', 'call echo']);
    stop.abort();
    expect(await first).toBe('stopped');
    expect(await second).toBe('second');
  });

  it('has the time that the settings of the server give', async () => {
    const episode = await begin({ mcp: puppet({}, { timeoutSeconds: 7 }) as JsonObject, submit: true });
    expect([episode.timeLimitMs?.('echo'), episode.timeLimitMs?.('submit')]).toEqual([7_000, undefined]);
    await lab.stop();
    expect((await begin()).timeLimitMs?.('echo')).toBeUndefined();
  });

  it('may have a tool that came later', async () => {
    const episode = await begin();
    expect(await call(episode, 'late')).toMatchObject({ reason: 'not_found' });
    await call(episode, 'grow');
    await eventually(async () => (await episode.tools(AbortSignal.abort())).some(({ name }) => name === 'late'));
    expect(await said(episode, 'late')).toBe('late');
  });
});

describe('an episode whose server is lost', () => {
  it('fails from then on: another server would have forgotten everything', async () => {
    const episode = await begin({ submit: true });
    await expect(call(episode, 'die')).rejects.toMatchObject({
      code: 'gone',
      message:
        'The MCP server Lab failed during the call of die: it has gone away. Whether the call was carried out is not known. The state of the episode is lost with it.',
    });
    const gone = {
      code: 'gone',
      message:
        'The MCP server of the episode has ended: The process ended with code 3. The state of the episode is lost with it.',
    };
    await eventually(async () => (await call(episode, 'echo').catch((error: Error) => error.message)) === gone.message);
    // Time enough for a server to come back.
    const others = [await lab.begin(), await lab.begin(), await lab.begin()];
    await expect(call(episode, 'echo', { text: 'x' })).rejects.toMatchObject(gone);
    await expect(call(episode, 'submit', { answer: '3' })).rejects.toMatchObject(gone);
    expect(starts()).toBe(4);
    expect(calls()).toEqual(['call die']);
    for (const other of others) expect(await said(other, 'echo', { text: 'mine lives' })).toBe('mine lives');
    await episode.close();
  });

  it('fails when it is killed between two calls', async () => {
    const episode = await begin();
    const pid = Number(await said(episode, 'pid'));
    process.kill(pid, 'SIGKILL');
    await eventually(() => !isAlive(pid));
    await expect(call(episode, 'pid')).rejects.toMatchObject({ code: 'gone' });
    await expect(call(episode, 'pid')).rejects.toMatchObject({ code: 'gone' });
    expect(starts()).toBe(1);
    expect(calls()).toEqual(['call pid']);
  });

  it('fails when its session of HTTP was forgotten: the call is not made in a new one', async () => {
    const server = await HttpMcpServer.start();
    const episode = await begin({ mcp: { url: server.url } });
    expect(await said(episode, 'echo')).toBe('echo');
    server.sessions.clear();
    await expect(call(episode, 'echo')).rejects.toMatchObject({ code: 'gone' });
    await expect(call(episode, 'echo')).rejects.toMatchObject({ code: 'gone' });
    expect(server.calls).toEqual(['echo']);
    expect(server.begun).toBe(1);
    await lab.stop();
    await server.stop();
  });
});

describe('the submit tool', () => {
  it('is listed with the others, ends the episode and is never sent to the server', async () => {
    const episode = await begin({ submit: true });
    expect((await episode.tools(AbortSignal.abort())).at(-1)).toEqual({
      name: 'submit',
      description: expect.any(String),
      input_schema: expect.objectContaining({ required: ['answer'] }),
    });
    expect(await call(episode, 'submit', { answer: '3' })).toEqual(output('Submitted.', { finished: true }));
    expect(calls()).toEqual([]);
  });

  it('may have another name and other input', async () => {
    const input = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const episode = await begin({ submit: { name: 'hand_in', description: 'Hand it in.', input } });
    expect((await episode.tools(AbortSignal.abort())).at(-1)).toEqual({
      name: 'hand_in',
      description: 'Hand it in.',
      input_schema: input,
    });
    expect(await call(episode, 'hand_in', { n: 1.5 })).toMatchObject({ ok: false });
    expect(await call(episode, 'hand_in', { n: 1 })).toMatchObject({ ok: true, output: { finished: true } });
    expect(await call(episode, 'submit', { answer: '3' })).toMatchObject({ reason: 'not_found' });
  });
});

describe('rewards by expressions', () => {
  const graded: LabSettings = {
    submit: true,
    reward: 'tool == "submit" ? (input.answer == task.answer ? 1.0 : 0.0) : none',
  };

  it('are a number, or none, which is not zero', async () => {
    const episode = await begin(graded);
    expect(await call(episode, 'echo', { text: 'x' })).toEqual(output('x'));
    expect(await call(episode, 'submit', { answer: '4' })).toEqual(output('Submitted.', { reward: 0, finished: true }));
    expect(await call(episode, 'submit', { answer: '3' })).toEqual(output('Submitted.', { reward: 1, finished: true }));
  });

  it('see the output and how many calls were carried out', async () => {
    const episode = await begin({ reward: 'output == "go" ? calls : -calls', finished: 'calls >= 3' });
    expect(await call(episode, 'nope')).toMatchObject({ ok: false }); // does not count
    expect(await call(episode, 'echo', { text: 'x' })).toEqual(output('x', { reward: -1 }));
    expect(await call(episode, 'echo', { text: 'go' })).toEqual(output('go', { reward: 2 }));
    expect(await call(episode, 'echo', { text: 'x' })).toEqual(output('x', { reward: -3, finished: true }));
    expect(await call(await lab.begin(), 'echo', { text: 'x' })).toEqual(output('x', { reward: -1 }));
  });

  it('are not given for a call that failed, unless the rule speaks of failures', async () => {
    const unaware = await begin({ reward: '1.0', finished: 'true' });
    expect(await call(unaware, 'fail')).toEqual({ ok: false, error: 'it went wrong' });
    await lab.stop();
    const reward = await begin({ reward: 'failed ? -0.5 : none' });
    expect(await call(reward, 'fail')).toEqual(output('it went wrong', { reward: -0.5, metadata: { failed: true } }));
    expect(await call(reward, 'echo', { text: 'x' })).toEqual(output('x'));
    await lab.stop();
    const finished = await begin({ finished: 'failed && calls > 1' });
    expect(await call(finished, 'fail')).toEqual({ ok: false, error: 'it went wrong' });
    expect(await call(finished, 'fail')).toEqual(
      output('it went wrong', { finished: true, metadata: { failed: true } }),
    );
  });

  it('that cannot be found are errors, never silence', async () => {
    const reward = async (rule: LabSettings): Promise<string> => {
      const episode = await begin(rule, { prompt: 'p', word: 'w' });
      const message = await call(episode, 'echo', { text: 'x' }).then(
        () => 'fine',
        (error: Error) => error.message,
      );
      await lab.stop();
      return message;
    };
    const begins = 'The reward of this call could not be found: ';
    expect(await reward({ reward: 'task.missing == 1 ? 1.0 : 0.0' })).toBe(
      `${begins}The expression cannot be evaluated: No such key: missing.`,
    );
    expect(await reward({ reward: '0.0 / 0.0' })).toBe(`${begins}reward must be a finite number or null, not NaN.`);
    expect(await reward({ reward: '1.0 / 0.0' })).toBe(
      `${begins}reward must be a finite number or null, not Infinity.`,
    );
    expect(await reward({ reward: 'task.word' })).toBe(
      `${begins}reward must be a finite number or null, not a string.`,
    );
    expect(await reward({ finished: 'task.word' })).toBe(`${begins}finished must be true or false, not a string.`);
  });
});

describe('rewards by a module', () => {
  const judged = async (judge: RewardFunction, options?: RewardOptions): Promise<Episode> => {
    const load = async (): Promise<Record<string, unknown>> => ({ default: defineReward(judge, options) });
    const mcp = puppet({ log: log.path }) as JsonObject;
    lab = await Lab.open({ mcp, submit: true, rewardModule: __filename }, { load });
    return lab.begin({ prompt: 'p', answer: '3' });
  };

  it('see the call, the task, and what they remember of the episode', async () => {
    const episode = await judged(({ tool, input, result, task, calls, state }) => {
      state.seen = [...((state.seen as string[]) ?? []), tool];
      const right = input.answer === task.answer;
      return { reward: right ? 1 : null, metadata: { seen: state.seen, calls, said: result.content.length } };
    });
    expect(await call(episode, 'echo', { text: 'x' })).toEqual(
      output('x', { metadata: { seen: ['echo'], calls: 1, said: 1 } }),
    );
    expect(await call(episode, 'submit', { answer: '3' })).toEqual(
      output('Submitted.', {
        reward: 1,
        finished: true,
        metadata: { seen: ['echo', 'submit'], calls: 2, said: 1 },
      }),
    );
    expect(await call(await lab.begin(), 'echo', { text: 'x' })).toMatchObject({
      output: { metadata: { calls: 1, seen: ['echo'] } },
    });
  });

  it('decide whether the episode is over, where they say so', async () => {
    const episode = await judged(({ tool }) => ({ reward: 0, finished: tool === 'echo' }));
    expect(await call(episode, 'submit', { answer: '' })).toEqual(output('Submitted.', { reward: 0 }));
    expect(await call(episode, 'echo', { text: 'x' })).toEqual(output('x', { reward: 0, finished: true }));
  });

  it('are asked about failures only if they want to be', async () => {
    const unaware = await judged(() => ({ reward: 1, finished: true }));
    expect(await call(unaware, 'fail')).toEqual({ ok: false, error: 'it went wrong' });
    await lab.stop();
    const aware = await judged(({ result }) => ({ reward: result.isError ? -1 : 1 }), { failures: true });
    expect(await call(aware, 'fail')).toEqual(output('it went wrong', { reward: -1, metadata: { failed: true } }));
  });

  it.each<[string, RewardFunction, string]>([
    ['throw', () => Promise.reject(new Error('the judge is ill')), 'the judge is ill'],
    ['give NaN', () => ({ reward: Number.NaN }), 'reward must be a finite number or null, not NaN.'],
    ['give a text', () => ({ reward: '1' }) as never, 'reward must be a finite number or null, not a string.'],
    ['give a bare number', () => 1 as never, 'the module gave a number, not an object.'],
    [
      'say something else than yes or no',
      () => ({ finished: 1 }) as never,
      'finished must be true or false, not a number.',
    ],
    [
      'give metadata that is no JSON',
      () => ({ metadata: { n: 1n } }),
      'metadata.n is a bigint, which JSON cannot say.',
    ],
  ])('that %s are errors', async (_, judge, message) => {
    const episode = await judged(judge);
    await expect(call(episode, 'echo', { text: 'x' })).rejects.toMatchObject({
      code: 'failed',
      message: `The reward of this call could not be found: ${message}`,
    });
  });

  it('do not hold up a call whose time is over', async () => {
    const stop = new AbortController();
    const episode = await judged(() => {
      stop.abort(new Error('too late'));
      return new Promise(() => {});
    });
    await expect(call(episode, 'echo', { text: 'x' }, stop.signal)).rejects.toThrow('too late');
  });
});
