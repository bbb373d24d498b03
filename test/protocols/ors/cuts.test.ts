import { setTimeout as sleep } from 'node:timers/promises';
import { defineEnvironment } from '../../../src/environments/module/define-environment.ts';
import { Gate } from '../../environments/stage.ts';
import { eventually } from '../../streams/logs.ts';
import { startHosting } from '../../support/environment.ts';
import type { RunningGateway } from '../../support/gateway.ts';
import { TcpProxy } from '../../support/proxy.ts';
import { type RunningRedis, startRedis } from '../../support/redis.ts';
import { type Called, type CallOptions, Trainer } from '../../support/trainer.ts';

const runs = new Map<string, number>();
const releases = new Map<string, Gate>();
/** A tool that is done before its client is back could not be told from one that was asked for twice. */
const released = (name: string): Gate => {
  const known = releases.get(name) ?? new Gate();
  releases.set(name, known);
  return known;
};
const textOf = (at: number, size: number): string => `done with ${at}`.padEnd(size, ' and more');

/** Takes 200 ms, or until its client has its task_id, and counts how often it ran for each input. */
const environment = defineEnvironment({
  name: 'slow',
  splits: ['train'],
  tasks: { train: [{}] },
  tools: [
    {
      name: 'work',
      description: 'Takes a while.',
      run: async ({ at, size }) => {
        const name = `${size} ${at}`;
        runs.set(name, (runs.get(name) ?? 0) + 1);
        await Promise.all([sleep(200), released(name).promise]);
        return textOf(Number(at), Number(size));
      },
    },
  ],
  prompt: () => 'Work.',
});

/** Of a small result every byte, head and all; of one in pieces some of the thousands that are alike. */
const SMALL = Array.from({ length: 900 }, (_, at) => ({ at, size: 20 }));
const LARGE = Array.from({ length: 50 }, (_, i) => ({ at: 300 + i * 149, size: 7_000 }));

describe.each([1, 2])('a proxy that cuts the connection at every byte of a call (%d replicas)', (replicas) => {
  let redis: RunningRedis | undefined;
  let gateways: RunningGateway[];
  let direct: Trainer;
  beforeAll(async () => {
    if (replicas > 1) redis = await startRedis();
    const env = { SLUICE_ORS_PUBLIC: 'true', ...(redis && { REDIS_URL: redis.url }) };
    gateways = await Promise.all(Array.from({ length: replicas }, () => startHosting([environment], { env })));
    for (const { url } of gateways) await eventually(async () => (await fetch(`${url}/readyz`)).status === 200);
    direct = new Trainer(gateways[0]?.url ?? '');
    runs.clear();
    releases.clear();
  });
  afterAll(async () => {
    direct.close();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await redis?.stop();
  });

  /** One call whose first answer is cut after so many bytes, unless it is over by then. */
  const through = async (at: number, size: number): Promise<{ last: Called; cut: boolean }> => {
    const sid = await direct.session();
    const proxy = await TcpProxy.start(gateways.at(-1)?.port ?? 0);
    const trainer = new Trainer(proxy.url);
    let cut = false;
    void proxy.cutAfter(at).then(() => {
      cut = true;
    });
    try {
      // A client that may have seen nothing says with a key that it means the same, or comes back while the tool runs.
      const key = at % 2 === 0 ? { key: `key-${at}` } : {};
      const attempt = async (options: CallOptions): Promise<Called> => {
        const call = trainer.open(sid, 'work', { at, size }, options);
        if ((await call.begun()).taskId !== undefined || options.key !== undefined) released(`${size} ${at}`).open();
        return call.done;
      };
      let called = await attempt(key);
      while (called.result === undefined) {
        if (called.error !== undefined || called.body !== undefined) throw new Error(JSON.stringify({ at, called }));
        await sleep(500); // as the clients of this protocol do
        called = await attempt(called.taskId === undefined ? key : { taskId: called.taskId });
      }
      return { last: called, cut };
    } finally {
      trainer.close();
      await proxy.stop();
    }
  };

  it('changes neither the result nor how often the tool runs', async () => {
    const left = [...SMALL, ...LARGE];
    const wrong: unknown[] = [];
    let cuts = 0;
    let whole = 0;
    const worker = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { at, size } = next;
        const { last, cut } = await through(at, size);
        if (cut) cuts++;
        else whole++;
        const [block] = (last.result as { output: { blocks: { text: string }[] } }).output.blocks;
        const times = runs.get(`${size} ${at}`);
        if (block?.text !== textOf(at, size) || times !== 1) wrong.push({ at, size, times, last });
      }
    };
    await Promise.all(Array.from({ length: 60 }, worker));
    expect(wrong).toEqual([]);
    expect(cuts).toBeGreaterThan(600);
    expect(whole).toBeGreaterThan(0); // or the small answers were longer than the cuts went
  }, 60_000);
});
