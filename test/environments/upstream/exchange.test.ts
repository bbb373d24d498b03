import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Agent } from 'undici';
import { type ExchangeRequest, exchange, Lost } from '../../../src/environments/upstream/exchange.ts';
import { running } from '../../support/running.ts';
import { gate, never } from './support.ts';

/** Answers each request on each connection by hand. */
const serve = async (answer: (socket: Socket) => void) => {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      received.push(bytes.toString());
      answer(socket);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  running.add({
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, port, received, sockets };
};

const pool = (options: ConstructorParameters<typeof Agent>[0] = {}): Agent => {
  const agent = new Agent(options);
  running.add({ stop: () => agent.destroy() });
  return agent;
};

const request = (origin: string, change: Partial<ExchangeRequest> = {}): ExchangeRequest => ({
  ...{ origin, method: 'POST', path: '/', headers: {}, body: '{}', headMs: 0, silentMs: 0, signal: never() },
  ...{ head: () => {}, data: () => false },
  ...change,
});

const failure = (asked: Promise<void>): Promise<unknown> =>
  asked.then(() => 'no failure').catch((error: unknown) => error);

describe('an exchange with an upstream', () => {
  it('knows that nothing was sent where there is no connection', async () => {
    expect(await failure(exchange(pool(), request('http://127.0.0.1:9')))).toMatchObject({
      sent: false,
      silent: false,
    });
  });

  it('says that something may have been sent once there was one', async () => {
    const { origin } = await serve((socket) => socket.destroy());
    expect(await failure(exchange(pool(), request(origin)))).toMatchObject({ sent: true, silent: false });
  });

  it('writes nothing when it is aborted while it connects, and does not wait for the connection', async () => {
    const { origin, port, received } = await serve(() => {});
    const go = gate();
    const connected = gate();
    const agent = pool({
      connect: (_, done) => {
        void go.opened.then(() => {
          const socket = connect(port, '127.0.0.1', () => {
            done(null, socket);
            connected.open();
          });
        });
      },
    });
    const controller = new AbortController();
    const reason = new Error('over');
    const failed = failure(exchange(agent, request(origin, { signal: controller.signal })));
    controller.abort(reason);
    expect(await failed).toBe(reason);
    go.open();
    await connected.opened;
    await agent.close();
    expect(received).toEqual([]);
  });

  it('closes its connection when it is aborted or given up', async () => {
    const { origin, sockets } = await serve(() => {});
    expect(await failure(exchange(pool(), request(origin, { headMs: 20 })))).toMatchObject({
      sent: true,
      silent: true,
    });
    const [socket] = sockets;
    if (!socket?.closed) await new Promise((resolve) => socket?.once('close', resolve));
    expect(socket?.destroyed).toBe(true);
  });

  it('ends as soon as all that was wanted has come, and leaves the connection to the next one', async () => {
    const { origin, sockets } = await serve((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n');
      tails.push(() => socket.write('0\r\n\r\n'));
    });
    const tails: (() => void)[] = [];
    const agent = pool({ connections: 1 });
    for (let i = 0; i < 3; i++) {
      const asked = exchange(agent, request(origin, { data: (bytes) => bytes.toString() === 'ok' }));
      tails.pop()?.(); // it had to wait for this one
      await asked;
    }
    expect(sockets.size).toBe(1);
  });

  it('takes no notice of what comes before the answer', async () => {
    const { origin } = await serve((socket) =>
      socket.write('HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No\r\nx-a: b\r\n\r\n'),
    );
    const heads: unknown[] = [];
    await exchange(pool(), request(origin, { head: (status, { 'x-a': a }) => heads.push([status, a]) }));
    expect(heads).toEqual([[204, 'b']]);
  });

  it('fails with whatever its reader throws', async () => {
    const { origin } = await serve((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab'));
    const broken = new Error('broken');
    const fail = () => {
      throw broken;
    };
    expect(await failure(exchange(pool(), request(origin, { head: fail })))).toBe(broken);
    expect(await failure(exchange(pool(), request(origin, { data: fail })))).toBe(broken);
  });

  it('is lost when the answer is shorter than it should be, or no HTTP', async () => {
    for (const answer of ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab', 'hello\r\n\r\n']) {
      const { origin } = await serve((socket) => socket.end(answer));
      expect(await failure(exchange(pool(), request(origin)))).toBeInstanceOf(Lost);
    }
  });
});
