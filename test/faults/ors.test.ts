import { Redis } from 'ioredis';
import { eventually } from '../streams/logs.ts';
import { Cli } from '../support/child.ts';
import { freePort, type RunningRedis, startRedis } from '../support/redis.ts';
import { type OpenCall, Trainer } from '../support/trainer.ts';

/** The promise of the product: whoever waits for something whose gateway dies is told within so long. */
const END_WITHIN_MS = 25_000;
const PATIENCE_MS = 120_000;

const ENVIRONMENT = `
import { defineEnvironment } from 'sluice';
export default defineEnvironment({
  name: 'faulty',
  splits: ['train'],
  tasks: { train: [{}] },
  setup: () => ({ count: 0 }),
  tools: [
    {
      name: 'sleep',
      description: 'Takes so many ms.',
      run: async ({ ms }, { state, signal }) => {
        state.count++;
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, ms);
          signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); });
        });
        return 'slept ' + state.count;
      },
    },
  ],
  prompt: () => 'Sleep.',
  teardown: () => { console.log('TEARDOWN'); },
});
`;

/** A gateway of its own process. */
class Process {
  readonly cli: Cli;
  readonly trainer: Trainer;

  constructor(redis: RunningRedis, port: number) {
    this.cli = new Cli(['serve'], {
      env: {
        PORT: String(port),
        REDIS_URL: redis.url,
        SLUICE_SHUTDOWN_GRACE_SECONDS: '4',
        LOG_LEVEL: 'warn',
      },
      files: {
        'environment.mjs': ENVIRONMENT,
        'sluice.yaml': 'ors: { environments: [{ module: ./environment.mjs }] }',
      },
    });
    this.trainer = new Trainer(`http://127.0.0.1:${port}`);
  }

  get teardowns(): number {
    return this.cli.lines.filter((line) => line === 'TEARDOWN').length;
  }

  async ready(): Promise<this> {
    await eventually(
      () =>
        fetch(`${this.trainer.base}/readyz`).then(
          ({ status }) => status === 200,
          () => false,
        ),
      PATIENCE_MS,
    );
    return this;
  }
}

const pair = async (): Promise<{ redis: RunningRedis; one: Process; two: Process }> => {
  const redis = await startRedis();
  const one = new Process(redis, await freePort());
  const two = new Process(redis, await freePort());
  await Promise.all([one.ready(), two.ready()]);
  return { redis, one, two };
};

const begun = async (calls: readonly OpenCall[]): Promise<void> => {
  for (const call of calls) expect((await call.begun()).taskId).toBeDefined();
};

describe('sessions of real processes', () => {
  it.concurrent(
    'are gone with their gateway, and so is whatever they did: nobody waits for ever',
    async () => {
      const { one, two } = await pair();
      const sid = await one.trainer.session();
      const calls = [two.trainer.open(sid, 'sleep', { ms: 600_000 })];
      await begun(calls);
      const prompt = two.trainer.ask('GET', '/prompt', { sid });
      expect(await prompt).toMatchObject({ status: 200 });
      const killed = performance.now();
      one.cli.child.kill('SIGKILL');
      // While it is not certain, a client is asked to try again.
      const statuses = new Set<number>();
      await eventually(async () => {
        const { status } = await two.trainer.ask('POST', '/ping', { sid });
        statuses.add(status);
        return status === 410;
      }, END_WITHIN_MS);
      expect([...statuses].filter((status) => ![200, 503, 410].includes(status))).toEqual([]);
      expect(await two.trainer.ask('POST', '/ping', { sid })).toMatchObject({
        status: 410,
        body: { detail: 'Session lost: its gateway is gone' },
      });
      for (const call of calls) expect((await call.done).error).toMatch(/gateway/);
      expect(performance.now() - killed).toBeLessThan(END_WITHIN_MS);
      // Its id is free again.
      const again = await two.trainer.ask('POST', '/create', { sid, body: { split: 'train', index: 0 } });
      expect(again).toMatchObject({ status: 200 });
      expect((await two.trainer.call(sid, 'sleep', { ms: 1 })).result).toMatchObject({ ok: true });
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'are torn down when their gateway is told to stop, behind the calls that can still end',
    async () => {
      const { one, two } = await pair();
      const sids = [await one.trainer.session(), await one.trainer.session()] as const;
      const quick = [
        one.trainer.open(sids[0], 'sleep', { ms: 2_000 }),
        two.trainer.open(sids[0], 'sleep', { ms: 2_001 }),
      ];
      const endless = [one.trainer.open(sids[1], 'sleep', { ms: 600_000 })];
      await begun([...quick, ...endless]);
      one.cli.child.kill('SIGTERM');
      for (const call of quick) expect((await call.done).result).toMatchObject({ ok: true });
      for (const call of endless) expect((await call.done).error).toMatch(/stopped/);
      expect(await one.cli.ended).toMatchObject({ code: 0 });
      expect(one.teardowns).toBe(2);
      for (const sid of sids) {
        expect(await two.trainer.ask('POST', '/ping', { sid })).toMatchObject({
          status: 410,
          body: { detail: 'Session ended: its gateway was stopped' },
        });
      }
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'outlive a store that is emptied: nobody is told that they do not exist',
    async () => {
      const { redis, one, two } = await pair();
      const admin = new Redis(redis.port, '127.0.0.1');
      const sid = await one.trainer.session();
      const call = two.trainer.open(sid, 'sleep', { ms: 4_000 });
      await begun([call]);
      await admin.flushall();
      admin.disconnect();
      const statuses: number[] = [];
      await eventually(async () => {
        const answers = [
          await one.trainer.ask('POST', '/ping', { sid }),
          await two.trainer.ask('POST', '/ping', { sid }),
          await two.trainer.ask('GET', '/prompt', { sid }),
        ];
        statuses.push(...answers.map(({ status }) => status));
        return answers.every(({ status }) => status === 200) && statuses.length > 30;
      }, 20_000);
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
      expect((await call.done).result).toMatchObject({ output: { blocks: [{ text: 'slept 1' }] } });
      expect((await two.trainer.call(sid, 'sleep', { ms: 1 })).result).toMatchObject({
        output: { blocks: [{ text: 'slept 2' }] }, // it is the same episode
      });
    },
    PATIENCE_MS,
  );

  it.concurrent(
    'go on when the store comes back: what ran meanwhile has run once',
    async () => {
      const { redis, one, two } = await pair();
      const sid = await one.trainer.session();
      const calls = [one.trainer.open(sid, 'sleep', { ms: 1_500 }), two.trainer.open(sid, 'sleep', { ms: 1_501 })];
      await begun(calls);
      redis.child.kill('SIGSTOP');
      const refused = await one.trainer.call(sid, 'sleep', { ms: 1 });
      expect(refused).toMatchObject({ status: 503, body: { detail: expect.any(String) } });
      expect(refused.headers['retry-after']).toBeDefined();
      redis.child.kill('SIGCONT');
      for (const call of calls) expect((await call.done).result).toMatchObject({ ok: true });
      await eventually(async () => (await two.trainer.call(sid, 'sleep', { ms: 1 })).result !== undefined, 20_000);
      const { result } = await one.trainer.call(sid, 'sleep', { ms: 1 });
      const text = (result as { output: { blocks: { text: string }[] } }).output.blocks[0]?.text;
      expect(text).toBe('slept 4');
    },
    PATIENCE_MS,
  );
});
