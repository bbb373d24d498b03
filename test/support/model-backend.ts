import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { running } from './running.ts';

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Record<string, unknown>;
}

/** One request and the bytes that answer it, under full control. */
export class Reply {
  readonly request: ReceivedRequest;
  readonly socket: Socket;
  /** The client has closed the connection; when, by `performance.now()`. */
  readonly closed: Promise<number>;

  constructor(request: ReceivedRequest, socket: Socket) {
    this.request = request;
    this.socket = socket;
    this.closed = new Promise((resolve) => {
      socket.once('close', () => resolve(performance.now()));
      socket.once('end', () => resolve(performance.now()));
    });
  }

  raw(bytes: string | Buffer): void {
    if (!this.socket.destroyed) this.socket.write(bytes);
  }

  head(status = 200, headers: Readonly<Record<string, string>> = { 'content-type': 'text/event-stream' }): void {
    const lines = Object.entries({ 'transfer-encoding': 'chunked', ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    this.raw(`HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n`);
  }

  chunk(bytes: string | Buffer): void {
    const buffer = Buffer.from(bytes);
    if (buffer.length === 0) return;
    this.raw(Buffer.concat([Buffer.from(`${buffer.length.toString(16)}\r\n`), buffer, Buffer.from('\r\n')]));
  }

  end(): void {
    this.raw('0\r\n\r\n');
  }

  /** An answer in one go. */
  send(status: number, body: string, headers: Readonly<Record<string, string>> = {}): void {
    const length = String(Buffer.byteLength(body));
    const lines = Object.entries({ 'content-length': length, ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    this.raw(`HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n${body}`);
  }

  json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.send(status, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
  }

  /** A whole stream of events. */
  stream(body: string | Buffer): void {
    this.head();
    this.chunk(body);
    this.end();
  }

  cut(): void {
    this.socket.destroy();
  }
}

export type Script = (reply: Reply) => void | Promise<void>;

const headersOf = (lines: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    lines.map((line) => line.split(/: ?(.*)/s, 2) as [string, string]).map(([n, v]) => [n.toLowerCase(), v]),
  );

/** A backend that does what it is told: no HTTP library stands between a test and the bytes it sends. */
export class ScriptedBackend {
  readonly requests: ReceivedRequest[] = [];
  /** Connections that are open. */
  readonly sockets = new Set<Socket>();
  /** How many connections there have been. */
  accepted = 0;
  /** Answers the request number n (from 0); the last one also all that follow. */
  scripts: Script[];
  private readonly server: Server;

  private constructor(scripts: Script[]) {
    this.scripts = scripts;
    this.server = createServer((socket) => this.take(socket));
  }

  static start(...scripts: Script[]): Promise<ScriptedBackend> {
    const backend = new ScriptedBackend(scripts);
    running.add(backend);
    return new Promise((resolve) => {
      backend.server.listen(0, '127.0.0.1', () => resolve(backend));
    });
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    running.delete(this);
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private take(socket: Socket): void {
    this.accepted++;
    this.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    let bytes = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      for (;;) {
        const end = bytes.indexOf('\r\n\r\n');
        if (end < 0) return;
        const [line = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
        const headers = headersOf(lines);
        const length = Number(headers['content-length'] ?? 0);
        if (bytes.length < end + 4 + length) return;
        const text = bytes.subarray(end + 4, end + 4 + length).toString();
        bytes = bytes.subarray(end + 4 + length);
        const [method = '', path = ''] = line.split(' ');
        this.answer({ method, path, headers, body: text === '' ? {} : JSON.parse(text) }, socket);
      }
    });
  }

  private answer(request: ReceivedRequest, socket: Socket): void {
    const script = this.scripts[Math.min(this.requests.length, this.scripts.length - 1)];
    this.requests.push(request);
    void script?.(new Reply(request, socket));
  }
}

/** A chunk of Chat Completions as a frame. */
export const frame = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'm-1' };

/** A frame with a delta. */
export const delta = (fields: unknown, finish: string | null = null): string =>
  frame({ ...HEAD, choices: [{ index: 0, delta: fields, finish_reason: finish }] });

export const DONE = 'data: [DONE]\n\n';

/** A plain answer of some words. */
export const saying = (...words: string[]): string =>
  `${words.map((word) => delta({ content: word })).join('')}${delta({}, 'stop')}${DONE}`;
