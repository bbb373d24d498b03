import { connect } from 'node:net';

export interface RawRequest {
  readonly method?: string;
  /** As it stands in the request line, however wrong it is. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case; of two alike the last. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Undefined if the answer is not JSON. */
  readonly json: unknown;
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const headersOf = (head: string): Record<string, string> =>
  Object.fromEntries(
    head
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(/: ?(.*)/s, 2) as [string, string])
      .map(([name, value]) => [name.toLowerCase(), value]),
  );

/**
 * One request on a socket of its own, sent byte for byte: no client stands in between that would mend or refuse what is
 * wrong. An answer that turns out to be a stream is cut once its head is there.
 */
export const rawRequest = (port: number, request: RawRequest): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const { method = 'GET', path, headers: given = {}, body } = request;
    const socket = connect(port, '127.0.0.1');
    const chunked = 'Transfer-Encoding' in given;
    const length = body === undefined || chunked ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    const lines = Object.entries({ Host: `127.0.0.1:${port}`, Connection: 'close', ...length, ...given });
    socket.write(`${method} ${path} HTTP/1.1\r\n`, 'latin1');
    socket.write(`${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`, 'latin1');
    if (body !== undefined) socket.write(body);
    let bytes = Buffer.alloc(0);
    const finish = (): void => {
      const end = bytes.indexOf('\r\n\r\n');
      if (end < 0) {
        reject(new Error(`${method} ${path.slice(0, 80)} got no answer`));
        return;
      }
      const head = bytes.subarray(0, end).toString('latin1');
      const text = bytes.subarray(end + 4).toString();
      const headers = headersOf(head);
      const json = headers['content-type']?.includes('json') ? parse(text) : undefined;
      resolve({ status: Number(head.split(' ', 2)[1]), headers, text, json });
    };
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.includes('text/event-stream') && bytes.includes('\r\n\r\n')) socket.destroy();
    });
    socket.on('error', () => {}); // what has come counts
    socket.on('close', finish);
  });
