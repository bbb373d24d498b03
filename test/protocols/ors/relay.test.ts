import { randomUUID } from 'node:crypto';
import { defineEnvironment } from '../../../src/environments/module/define-environment.ts';
import { Gate } from '../../environments/stage.ts';
import { eventually } from '../../streams/logs.ts';
import { startHosting } from '../../support/environment.ts';
import type { RunningGateway } from '../../support/gateway.ts';
import { TcpProxy } from '../../support/proxy.ts';
import { Trainer } from '../../support/trainer.ts';

const gates = new Map<string, Gate<string>>();
const runs: string[] = [];
const ended: string[] = [];

const source = defineEnvironment({
  name: 'source',
  splits: ['train'],
  tasks: { train: [{}] },
  tools: [
    {
      name: 'wait',
      description: 'Waits for the test.',
      run: ({ name }) => {
        runs.push(String(name));
        const gate = new Gate<string>();
        gates.set(String(name), gate);
        return gate.promise;
      },
    },
  ],
  prompt: ({ secrets }) => `The key is ${secrets.KEY === undefined ? 'missing' : 'there'}.`,
  teardown: ({ sid }) => {
    ended.push(sid);
  },
});

/** A gateway in front of another one, with a wire between them that can be cut. */
describe('an environment of another server', () => {
  let upstream: RunningGateway;
  let wire: TcpProxy;
  let gateway: RunningGateway;
  let trainer: Trainer;
  let name: string;
  beforeAll(async () => {
    upstream = await startHosting([source], { env: { SLUICE_ORS_PUBLIC: 'true' } });
    wire = await TcpProxy.start(upstream.port);
    gateway = await startHosting([], {
      env: { SLUICE_ORS_PUBLIC: 'true' },
      others: [{ name: 'relayed', upstream: wire.url, environment: 'source' }],
    });
    trainer = new Trainer(gateway.url);
  });
  afterAll(async () => {
    for (const gate of gates.values()) gate.open('over');
    trainer.close();
    await gateway.stop();
    await wire.stop();
    await upstream.stop();
  });
  beforeEach(() => {
    name = randomUUID();
  });
  const running = (): Promise<void> => eventually(() => gates.has(name));

  it('is asked once, however often the wire is cut, and its client notices nothing', async () => {
    const sid = await trainer.session();
    const call = trainer.open(sid, 'wait', { name });
    await call.begun();
    await running();
    for (let i = 0; i < 3; i++) {
      const before = wire.accepted;
      wire.cut();
      await eventually(() => wire.accepted > before, 30_000); // it has come back by itself
    }
    gates.get(name)?.open('at last');
    expect((await call.done).result).toMatchObject({ ok: true, output: { blocks: [{ text: 'at last' }] } });
    expect(runs.filter((one) => one === name)).toHaveLength(1);
  }, 20_000);

  it('can be left by its own client meanwhile, who gets the result by the id of this gateway', async () => {
    const sid = await trainer.session();
    const call = trainer.open(sid, 'wait', { name });
    const { taskId = '' } = await call.begun();
    await running();
    call.leave();
    wire.cut();
    gates.get(name)?.open('kept');
    const again = await trainer.call(sid, 'wait', { name }, { taskId });
    expect(again).toMatchObject({ taskId, result: { output: { blocks: [{ text: 'kept' }] } } });
    expect(runs.filter((one) => one === name)).toHaveLength(1);
  }, 20_000);

  it('gets the secrets of the session, and its end', async () => {
    const { sid } = (await trainer.ask('POST', '/create_session')).body as { sid: string };
    const body = { split: 'train', index: 0, secrets: { KEY: 'the key of the test' } };
    expect(await trainer.ask('POST', '/create', { sid, body })).toMatchObject({ status: 200 });
    expect(await trainer.ask('GET', '/prompt', { sid })).toMatchObject({ body: [{ text: 'The key is there.' }] });
    const before = ended.length;
    expect(await trainer.ask('POST', '/delete', { sid })).toMatchObject({ status: 200 });
    expect(ended).toHaveLength(before + 1);
  });

  it('that is away is told as such, before anything has begun', async () => {
    wire.target = undefined;
    wire.cut();
    try {
      const { status, body } = await trainer.ask('POST', '/create', {
        sid: randomUUID(),
        body: { split: 'train', index: 0 },
      });
      expect({ status, body }).toMatchObject({ status: 503, body: { detail: expect.any(String) } });
    } finally {
      wire.target = upstream.port;
    }
  }, 20_000);
});
