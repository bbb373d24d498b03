import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Connection, type ConnectionOptions } from '../../src/sse/connection.ts';
import { framed } from '../../src/sse/framing.ts';
import { Heartbeat } from '../../src/sse/heartbeat.ts';
import { TimerWheel } from '../../src/sse/timer-wheel.ts';

/** What is given to the kernel, one entry for each time. */
const countWrites = (socket: Socket): string[][] => {
  const writes: string[][] = [];
  const { _write, _writev } = socket;
  socket._write = (chunk: Buffer | string, encoding, done) => {
    writes.push([String(chunk)]);
    _write.call(socket, chunk, encoding, done);
  };
  socket._writev = (chunks: { chunk: Buffer | string; encoding: BufferEncoding }[], done) => {
    writes.push(chunks.map(({ chunk }) => String(chunk)));
    _writev?.call(socket, chunks, done);
  };
  return writes;
};

const serveOnce = async (
  answer: (res: ServerResponse, options: ConnectionOptions) => void,
): Promise<{ writes: string[][]; body: string; reasons: string[] }> => {
  const reasons: string[] = [];
  let writes: string[][] = [];
  const options: ConnectionOptions = {
    wheel: new TimerWheel(),
    heartbeat: new Heartbeat(() => ':\n\n'),
    heartbeatSeconds: 30,
    slowMs: 30_000,
    expiresAt: Number.POSITIVE_INFINITY,
    drained: () => {},
    closed: (reason) => reasons.push(reason),
  };
  const server = createServer((_, res) => answer(res, options));
  server.on('connection', (socket) => {
    writes = countWrites(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const found = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return { body: await found.text(), writes, reasons };
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

describe('a connection', () => {
  it('sends its headers together with the first bytes, and its end together with the last', async () => {
    const { writes, body, reasons } = await serveOnce((res, options) =>
      Connection.open(res, options, {}, (connection) => {
        connection.write(framed('chunked', 'data: first\n\n'));
        setImmediate(() => connection.finish(framed('chunked', 'data: last\n\n')));
      }),
    );
    expect(body).toBe('data: first\n\ndata: last\n\n');
    expect(writes.map((parts) => parts.length)).toEqual([2, 2]);
    expect(writes[0]?.[0]).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(writes[1]?.[1]).toBe('0\r\n\r\n');
    expect(reasons).toEqual(['finished']);
  });

  it('sends its headers also if there is nothing to say yet', async () => {
    const { writes } = await serveOnce((res, options) =>
      Connection.open(res, options, {}, (connection) => setImmediate(() => connection.end('finished'))),
    );
    expect(writes[0]?.[0]).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(writes).toHaveLength(2);
  });

  it('has not ended with bytes that did not leave', async () => {
    const big = 'x'.repeat(10_000_000);
    const early: string[] = [];
    const closed: string[] = [];
    const { body } = await serveOnce((res, options) => {
      let end: (() => void) | undefined;
      const watched = { ...options, drained: () => end?.(), closed: (reason: string) => void closed.push(reason) };
      Connection.open(res, watched, {}, (connection) => {
        setImmediate(() => {
          connection.finish(framed('chunked', big));
          early.push(...closed);
          end = () => connection.end('finished');
        });
      });
    });
    expect(body).toHaveLength(big.length);
    expect([early, closed]).toEqual([[], ['finished']]);
  });
});
