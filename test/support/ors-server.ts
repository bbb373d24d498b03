import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { running } from './running.ts';

type Json = Readonly<Record<string, unknown>>;

export interface OrsRequest {
  readonly method: string;
  /** Without the prefix of the server, in lower case: names are compared so. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Json;
  readonly response: ServerResponse;
}

/** What a tool of the server may do besides giving the JSON of its result, or throwing the text of an `error` event. */
export interface ToolStage {
  readonly input: Json;
  ping(): void;
}

export interface OrsServerOptions {
  readonly prefix?: string;
  readonly lineEnd?: '\r\n' | '\n';
  /** `data:x` in the place of `data: x`. */
  readonly tight?: boolean;
  /** Code points of one piece. */
  readonly pieceLength?: number;
  /** Runs a call of one `Idempotency-Key` once, and says so. */
  readonly honoursKeys?: boolean;
  /** Each connection is good for one request. */
  readonly brief?: boolean;
  readonly setup?: () => Promise<void>;
  readonly tools?: Readonly<Record<string, (stage: ToolStage) => string | Promise<string>>>;
}

interface Task {
  readonly id: string;
  readonly result: Promise<{ readonly event: 'result' | 'error'; readonly text: string }>;
  readonly watchers: Set<(text: string) => void>;
}

const TASKS = [{ question: 'one' }, { question: 'two' }, { question: 'three' }];
export const OK = (text: string, rest: Json = {}): string =>
  JSON.stringify({
    ok: true,
    output: { blocks: [{ text, detail: null, type: 'text' }], metadata: null, reward: 1, finished: false, ...rest },
  });

/**
 * A server that speaks ORS as the reference does: events with CRLF, ids of 32 hex digits, results that are read again by
 * id, sessions that set up in the background. Its answers to calls are written byte by byte where a test wants it, and
 * it can be told to answer anything else.
 */
export class OrsServer {
  readonly url: string;
  readonly requests: OrsRequest[] = [];
  /** The names of the tools that have run. */
  readonly executions: string[] = [];
  /** For each answer to a call in turn: after so many bytes, the head included, the connection is cut. */
  readonly cuts: (number | undefined)[] = [];
  /** Bytes of the last answer to a call that was not cut. */
  lastLength = 0;
  /** Answers in the place of the server; false: it answers itself. */
  answer: (request: OrsRequest) => boolean = () => false;
  readonly sessions = new Map<string, Promise<string | undefined>>();
  readonly tasks = new Map<string, Task>();
  private readonly keys = new Map<string, Task>();
  private readonly options: OrsServerOptions;
  private readonly close: () => Promise<void>;

  private constructor(url: string, options: OrsServerOptions, close: () => Promise<void>) {
    this.url = url;
    this.options = options;
    this.close = close;
  }

  static async start(options: OrsServerOptions = {}, port = 0): Promise<OrsServer> {
    const http = createServer();
    await new Promise<void>((resolve) => {
      http.listen(port, '127.0.0.1', resolve);
    });
    const close = () =>
      new Promise<void>((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      });
    const address = http.address() as AddressInfo;
    const server = new OrsServer(`http://127.0.0.1:${address.port}${options.prefix ?? ''}`, options, close);
    http.on('request', (request: IncomingMessage, response: ServerResponse) => void server.take(request, response));
    running.add(server);
    return server;
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.close();
  }

  paths(): readonly string[] {
    return this.requests.map(({ method, path }) => `${method} ${path}`);
  }

  private async take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of incoming as AsyncIterable<Buffer>) pieces.push(piece);
    const { prefix = '' } = this.options;
    const { url = '' } = incoming;
    const text = Buffer.concat(pieces).toString();
    const request: OrsRequest = {
      method: incoming.method ?? '',
      path: url.startsWith(prefix) ? url.slice(prefix.length).toLowerCase() : `outside ${url}`,
      headers: incoming.headers,
      body: text === '' ? {} : (JSON.parse(text) as Json),
      response,
    };
    this.requests.push(request);
    if (this.options.brief) response.setHeader('connection', 'close');
    if (!this.answer(request)) await this.route(request);
  }

  private async route(request: OrsRequest): Promise<void> {
    const { path, body, response, headers } = request;
    const say = (status: number, value: unknown) => json(response, status, value);
    const split = body.split === undefined || body.split === 'train';
    const sid = String(headers['x-session-id'] ?? '').trim();
    if (path === '/create_session') {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      return void response.end(this.frame('task_id', randomUUID()) + this.frame('end', ''));
    }
    if (path === '/lab/tools')
      return say(200, { tools: [{ name: 'echo', description: 'Says it.', input_schema: null }] });
    if (path === '/lab/splits') return say(200, [{ name: 'train', type: 'train' }]);
    if (path.startsWith('/lab/') && !split) return say(400, { detail: 'Invalid split' });
    if (path === '/lab/tasks') return say(200, { tasks: TASKS, env_name: 'lab' });
    if (path === '/lab/num_tasks') return say(200, { num_tasks: TASKS.length });
    if (path === '/lab/task') {
      const task = TASKS[Number(body.index)];
      return task ? say(200, { task }) : say(400, { detail: 'Invalid index' });
    }
    if (path === '/lab/task_range') {
      return say(200, { tasks: TASKS.slice(Number(body.start), Number(body.stop)) });
    }
    if (sid === '') return say(400, { detail: 'X-Session-ID header is required' });
    if (path === '/create') return this.create(sid, request);
    if (path === '/ping') {
      return this.sessions.has(sid) ? say(200, { status: 'ok' }) : say(404, { detail: 'Active environment not found' });
    }
    if (path === '/delete') this.sessions.delete(sid);
    if (path === '/delete' || path === '/delete_session') return say(200, { sid });
    const session = this.sessions.get(sid);
    if (!session) return say(404, { detail: 'Active environment not found' });
    const fault = await session;
    if (fault !== undefined) return say(500, { detail: fault });
    if (path === '/lab/prompt') return say(200, [{ text: 'Do it.', detail: null, type: 'text' }]);
    if (path === '/lab/task_tools') {
      return say(200, { tools: [{ name: 'echo', description: 'Says it.', input_schema: null }] });
    }
    if (path === '/lab/call') return this.call(request);
    return say(404, { detail: 'Not Found' });
  }

  private create(sid: string, { body, response }: OrsRequest): void {
    const name = String(body.env_name);
    const refuse = (status: number, detail: string) => json(response, status, { detail });
    const { setup = () => Promise.resolve() } = this.options;
    if (this.sessions.has(sid)) refuse(400, 'Session already exists');
    else if (name.toLowerCase() !== 'lab') refuse(404, `unknown environment '${name}'`);
    else if (typeof body.index === 'number' && !TASKS[body.index]) refuse(400, 'Invalid index');
    else {
      const done = setup().then(
        () => undefined,
        (error: Error) => `RuntimeError: ${error.message}`,
      );
      this.sessions.set(sid, done);
      json(response, 200, { sid });
    }
  }

  private async call({ body, headers, response }: OrsRequest): Promise<void> {
    const { honoursKeys = false } = this.options;
    const key = String(headers['idempotency-key']);
    const send = this.writer(response, honoursKeys);
    const task =
      typeof body.task_id === 'string'
        ? this.tasks.get(body.task_id)
        : (honoursKeys && this.keys.get(key)) || this.begin(body, key);
    if (!task) return send(this.frame('error', 'unknown task_id'), true);
    send(this.frame('task_id', task.id));
    task.watchers.add(send);
    const { event, text } = await task.result;
    task.watchers.delete(send);
    if (event === 'error') return send(this.frame('error', text), true);
    const points = [...text];
    const { pieceLength = 4096 } = this.options;
    for (let at = 0; at < points.length; at += pieceLength) {
      const last = at + pieceLength >= points.length;
      send(this.frame(last ? 'end' : 'chunk', points.slice(at, at + pieceLength).join('')), last);
    }
  }

  private begin(body: Json, key: string): Task {
    const watchers: Task['watchers'] = new Set();
    const name = String(body.name);
    const tool = this.options.tools?.[name] ?? ((stage: ToolStage) => OK(String(stage.input.text)));
    const { lineEnd = '\r\n' } = this.options;
    const ping = () => {
      for (const send of watchers) send(`: ping - 2026-11-18 05:03:56.775213+00:00${lineEnd}${lineEnd}`);
    };
    this.executions.push(name);
    const result = Promise.resolve()
      .then(() => tool({ input: body.input as Json, ping }))
      .then(
        (text) => ({ event: 'result', text }) as const,
        (error: Error) => ({ event: 'error', text: error.message }) as const,
      );
    const task: Task = { id: randomUUID().replaceAll('-', ''), watchers, result };
    this.tasks.set(task.id, task);
    this.keys.set(key, task);
    return task;
  }

  frame(event: string, data: string): string {
    const { lineEnd = '\r\n', tight = false } = this.options;
    const field = (name: string, value: string) => `${name}:${tight ? '' : ' '}${value}${lineEnd}`;
    const lines = data.split(/\r\n|\r|\n/).map((line) => field('data', line));
    return `${field('event', event)}${lines.join('')}${lineEnd}`;
  }

  /** Writes on the socket itself, so that a cut can be anywhere, also in the head. */
  private writer(response: ServerResponse, honoursKeys: boolean) {
    const { socket } = response;
    const cut = this.cuts.shift();
    let written = 0;
    let over = false;
    const raw = (bytes: Buffer) => {
      if (over || !socket) return;
      const room = cut === undefined ? bytes.length : cut - written;
      socket.write(bytes.subarray(0, room));
      written += bytes.length;
      if (room >= bytes.length) return;
      over = true;
      socket.end();
    };
    const mark = honoursKeys ? 'x-sluice-idempotency: honoured\r\n' : '';
    raw(
      Buffer.from(
        `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n${mark}connection: close\r\ntransfer-encoding: chunked\r\n\r\n`,
      ),
    );
    return (text: string, last = false): void => {
      const bytes = Buffer.from(text);
      raw(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]));
      if (!last) return;
      raw(Buffer.from('0\r\n\r\n'));
      if (over) return;
      this.lastLength = written;
      socket?.end();
    };
  }
}

export const json = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
};
