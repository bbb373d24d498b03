import { defineEnvironment } from '../../../src/environments/module/define-environment.ts';
import { startHosting } from '../../support/environment.ts';
import type { RunningGateway } from '../../support/gateway.ts';
import { type OpenCall, Trainer } from '../../support/trainer.ts';

const SECOND = 1_000;
let executions = 0;

/** Its setup takes 70 s on the clock of the test. */
const environment = defineEnvironment({
  name: 'heavy',
  splits: ['train'],
  tasks: { train: [{}] },
  setup: () =>
    new Promise<void>((resolve) => {
      setTimeout(resolve, 70 * SECOND);
    }),
  tools: [
    {
      name: 'work',
      description: 'Counts.',
      run: () => {
        executions++;
        return 'worked';
      },
    },
  ],
  prompt: () => 'Work.',
});

/** What comes over the wire needs turns of the event loop, not time. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('a setup of 70 seconds', () => {
  let gateway: RunningGateway;
  let trainer: Trainer;
  let sid: string;
  beforeEach(async () => {
    executions = 0;
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    gateway = await startHosting([environment], {
      env: { SLUICE_ORS_PUBLIC: 'true', SLUICE_ORS_SETUP_WAIT_SECONDS: '100' },
    });
    trainer = new Trainer(gateway.url);
    sid = await trainer.session();
  });
  afterEach(async () => {
    trainer.close();
    const stopped = gateway.stop();
    await jest.advanceTimersByTimeAsync(10 * SECOND);
    await stopped;
    jest.useRealTimers();
  });

  /** The clock goes on, second by second, and the wire with it. */
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      await jest.advanceTimersByTimeAsync(SECOND);
      await turns();
    }
  };
  /** A client that hangs up after so many seconds, and asks again as if it had seen nothing. */
  const impatient = async (seconds: number, times: number): Promise<OpenCall> => {
    let call = trainer.open(sid, 'work');
    for (let i = 0; i < times; i++) {
      await call.begun();
      await pass(seconds);
      call.leave();
      await turns();
      call = trainer.open(sid, 'work');
    }
    return call;
  };

  it('gives a client its task_id at once and a ping every ten seconds, so that it stays', async () => {
    const call = trainer.open(sid, 'work');
    expect((await call.begun()).frames.map(({ event }) => event)).toEqual(['task_id']);
    await pass(69);
    expect(executions).toBe(0);
    const { comments } = call.now;
    expect(new Set(comments)).toEqual(new Set([': ping']));
    expect(comments.length).toBeGreaterThanOrEqual(6);
    expect(comments.length).toBeLessThanOrEqual(10);
    await pass(2);
    expect((await call.done).result).toMatchObject({ ok: true, output: { blocks: [{ text: 'worked' }] } });
    expect(executions).toBe(1);
  });

  it('and a client that hangs up every ten seconds make one execution', async () => {
    const call = await impatient(10, 6);
    await pass(12);
    expect((await call.done).result).toMatchObject({ ok: true });
    expect(executions).toBe(1);
  });

  it('lets prompts wait', async () => {
    const prompt = trainer.ask('GET', '/prompt', { sid });
    await turns();
    await pass(71);
    expect(await prompt).toMatchObject({ status: 200, body: [{ text: 'Work.' }] });
  });
});

describe('a setup that takes longer than anybody waits', () => {
  it('ends prompts with 503 and calls with an error, and goes on', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    executions = 0;
    const gateway = await startHosting([environment], {
      env: { SLUICE_ORS_PUBLIC: 'true', SLUICE_ORS_SETUP_WAIT_SECONDS: '20' },
    });
    const trainer = new Trainer(gateway.url);
    try {
      const sid = await trainer.session();
      const prompt = trainer.ask('GET', '/prompt', { sid });
      const tools = trainer.ask('GET', '/task_tools', { sid });
      const call = trainer.open(sid, 'work');
      await call.begun();
      await turns();
      await jest.advanceTimersByTimeAsync(21 * SECOND);
      for (const answer of [await prompt, await tools]) {
        expect(answer).toMatchObject({ status: 503, body: { detail: expect.stringMatching(/takes too long/) } });
        expect(answer.headers.get('Retry-After')).toBe('5');
      }
      expect((await call.done).error).toMatch(/takes too long/);
      await jest.advanceTimersByTimeAsync(50 * SECOND);
      await turns();
      expect((await trainer.call(sid, 'work')).result).toMatchObject({ ok: true });
      expect(executions).toBe(1); // the call that was given up did not run
    } finally {
      trainer.close();
      const stopped = gateway.stop();
      await jest.advanceTimersByTimeAsync(10 * SECOND);
      await stopped;
      jest.useRealTimers();
    }
  });
});
