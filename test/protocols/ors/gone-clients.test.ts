import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Response } from 'express';
import { MemoryDirectory } from '../../../src/environments/memory-directory.ts';
import { Jobs } from '../../../src/jobs/jobs.ts';
import { MemoryJobStore } from '../../../src/jobs/memory-store.ts';
import type { Created, NewJob } from '../../../src/jobs/store.ts';
import { callBody } from '../../../src/protocols/ors/bodies.ts';
import { Calls } from '../../../src/protocols/ors/calls.ts';
import { orsProblem } from '../../../src/protocols/ors/problems.ts';
import { TimerWheel } from '../../../src/sse/timer-wheel.ts';
import { LogError } from '../../../src/streams/log.ts';
import { Gate, Replica, Stage, settle } from '../../environments/stage.ts';
import { Counting } from '../../jobs/replicas.ts';
import { Trainer } from '../../support/trainer.ts';

/** What the next call has to wait for, and who has come to wait. */
class Barrier {
  private gate: Gate | undefined;
  private arrived = new Gate();

  close(): void {
    this.gate = new Gate();
    this.arrived = new Gate();
  }
  open(): void {
    this.gate?.open();
    this.gate = undefined;
  }
  get reached(): Promise<void> {
    return this.arrived.promise;
  }
  async pass(): Promise<void> {
    this.arrived.open();
    await this.gate?.promise;
  }
}

class FarDirectory extends MemoryDirectory {
  readonly barrier = new Barrier();

  override async rejoin(key: string, call: string): Promise<string | undefined> {
    await this.barrier.pass();
    return super.rejoin(key, call);
  }
}

class FarStore extends MemoryJobStore {
  readonly barrier = new Barrier();
  away = false;
  created = 0;

  override async create(job: NewJob): Promise<Created> {
    await this.barrier.pass();
    if (this.away) throw new LogError('unavailable', 'away');
    this.created++;
    return super.create(job);
  }
}

describe('a call whose way is long', () => {
  let stage: Stage;
  let directory: FarDirectory;
  let store: FarStore;
  let replica: Replica;
  let jobs: Jobs;
  let server: Server;
  let trainer: Trainer;
  let closed: Promise<unknown>;
  /** Calls that have been dealt with. */
  let handled: Gate;
  beforeEach(async () => {
    stage = new Stage();
    stage.setup.open();
    directory = new FarDirectory();
    store = new FarStore();
    const hosted = stage.hosted({ maxCalls: 2, maxOutputBytes: 1_000 });
    replica = new Replica([hosted], { directory });
    jobs = new Jobs({ store, replica: replica.name, observe: new Counting() });
    const session = await replica.create(hosted);
    const calls = new Calls({
      ...{ jobs, directory, sessions: replica.sessions, wheel: new TimerWheel() },
      ...{ setupWaitMs: 1_000, lingerMs: 60_000, slowMs: 1_000 },
      opened: () => {},
      closed: () => {},
      failed: (message) => {
        throw new Error(message);
      },
    });
    const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
      const body: Buffer[] = [];
      for await (const bytes of req) body.push(bytes as Buffer);
      const { name, input, task_id: taskId } = callBody(JSON.parse(Buffer.concat(body).toString()));
      const idempotencyKey = req.headers['idempotency-key'] as string | undefined;
      const wanted = {
        ...{ principal: 'ann', sid: 's', expiresAt: Number.POSITIVE_INFINITY, name, input },
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      };
      closed = once(res, 'close');
      handled = new Gate();
      try {
        const where = { where: 'here', session } as const;
        if (taskId == null) await calls.start(wanted, where, res as Response);
        else await calls.again(wanted, where, taskId, res as Response);
      } catch (error) {
        res.writeHead(orsProblem(error).status).end('{}');
      }
      handled.open();
    };
    server = createServer((req, res) => void answer(req, res));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    trainer = new Trainer(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    stage.tool.open('late');
    trainer.close();
    await replica.sessions.close();
    await jobs.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const ran = (): number => stage.log.filter((line) => line === 'call').length;
  /** A client that leaves while its call waits somewhere. */
  const leaveAt = async (barrier: Barrier, key?: string): Promise<void> => {
    barrier.close();
    const call = trainer.open('s', 'wait', {}, key === undefined ? {} : { key });
    await barrier.reached;
    call.leave();
    await closed;
    barrier.open();
    await handled.promise;
    await settle();
  };

  it('does not begin when its client has gone before anything was written of it', async () => {
    await leaveAt(directory.barrier);
    expect([store.created, ran()]).toEqual([0, 0]);
  });

  it('does not run when its client goes before it was told of it: it would ask again', async () => {
    await leaveAt(store.barrier);
    expect([store.created, ran()]).toEqual([1, 0]);
    stage.tool.open('once');
    const called = await trainer.call('s', 'wait');
    expect(called).toMatchObject({ error: undefined, result: { ok: true } });
    expect(ran()).toBe(1);
  });

  it('runs all the same when it has a key with which it can be asked for again', async () => {
    await leaveAt(store.barrier, 'key');
    expect([store.created, ran()]).toEqual([1, 1]);
    stage.tool.open('once');
    expect((await trainer.call('s', 'wait', {}, { key: 'key' })).result).toMatchObject({ ok: true });
    expect(ran()).toBe(1);
  });

  it('leaves its place when it cannot be written down', async () => {
    store.away = true;
    for (let i = 0; i < 5; i++) expect(await trainer.call('s', 'echo', { text: 'x' })).toMatchObject({ status: 503 });
    store.away = false;
    expect((await trainer.call('s', 'echo', { text: 'x' })).result).toMatchObject({ ok: true });
  });

  it('with a key is not taken for one without that was left', async () => {
    const first = trainer.open('s', 'wait');
    const { taskId } = await first.begun();
    first.leave();
    await closed;
    await settle();
    const keyed = trainer.open('s', 'wait', {}, { key: 'key' });
    expect((await keyed.begun()).taskId).not.toBe(taskId);
    await settle();
    expect(ran()).toBe(2);
  });

  it('ends with an error when its result is larger than it may be', async () => {
    const called = await trainer.call('s', 'echo', { text: 'x'.repeat(1_000) });
    expect(called.error).toBe('The result of echo is larger than 1000 bytes.');
    expect((await trainer.call('s', 'echo', { text: 'x' })).result).toMatchObject({ ok: true });
  });

  it('says in every answer that keys are honoured', async () => {
    for (const options of [{}, { taskId: 'unknown' }]) {
      const { headers } = await trainer.call('s', 'echo', { text: 'x' }, options);
      expect(headers['x-sluice-idempotency']).toBe('honoured');
    }
  });
});
