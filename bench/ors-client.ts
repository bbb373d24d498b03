// Who calls the tool in bench/ors.ts: each session has one connection and sends its next call when the last has ended. Raw
// sockets, and no more of HTTP than shows where an answer ends: it must not cost what the gateway does.
import { connect, type Socket } from 'node:net';
import { optionsOfProcess, serve } from './jobs-shared.ts';
import { percentile } from './support.ts';

export interface ClientOptions {
  readonly port: number;
  readonly sessions: number;
  /** Sent with every request; empty: none. */
  readonly token: string;
}

export interface Measured {
  readonly calls: number;
  readonly ms: number;
  readonly p50: number;
  readonly p99: number;
  readonly wrong: number;
  /** The first answer that was not right. */
  readonly example: string | undefined;
}

const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');
/** More would not fit into memory; the bench is then longer than it has to be. */
const MAX_CALLS = 5_000_000;

const options = optionsOfProcess<ClientOptions>();
const base = `http://127.0.0.1:${options.port}`;
const authorization: Record<string, string> = options.token === '' ? {} : { Authorization: `Bearer ${options.token}` };

const asked = async (path: string, sid: string, body?: string): Promise<void> => {
  const headers = { ...authorization, 'X-Session-ID': sid, 'Content-Type': 'application/json' };
  const init = body === undefined ? { headers } : { method: 'POST', headers, body };
  const answer = await fetch(`${base}${path}`, init);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
};

const isRight = (answer: string, text: string): boolean => {
  const first = answer.indexOf('event: ');
  const end = answer.indexOf('event: end\ndata: {"ok":true,');
  return (
    answer.startsWith('HTTP/1.1 200 ') &&
    answer.startsWith('event: task_id\ndata: ', first) &&
    end > first &&
    answer.includes(`"text":"${text}"`, end)
  );
};

let counting = false;
let stopped = false;
let times: number[] = [];
let wrong = 0;
let example: string | undefined;

const note = (answer: string, text: string, ms: number): void => {
  if (!isRight(answer, text)) {
    wrong++;
    example ??= answer;
  }
  if (counting && times.length < MAX_CALLS) times.push(ms);
};

/** One session: a connection that is always waiting for an answer. */
class Caller {
  private readonly socket: Socket;
  private readonly head: string;
  private readonly name: string;
  private calls = 0;
  private text = '';
  private sentAt = 0;
  private answer: Buffer | undefined;

  constructor(sid: string, name: string) {
    this.name = name;
    const token = options.token === '' ? '' : `Authorization: Bearer ${options.token}\r\n`;
    this.head = `POST /echo/call HTTP/1.1\r\nHost: 127.0.0.1\r\n${token}X-Session-ID: ${sid}\r\nContent-Type: application/json\r\n`;
    this.socket = connect(options.port, '127.0.0.1').setNoDelay(true);
    this.socket.on('data', (bytes) => this.take(bytes));
    this.socket.on('close', () => {
      if (!stopped) throw new Error('The gateway has closed a connection.');
    });
    this.send();
  }

  close(): void {
    this.socket.destroy();
  }

  private send(): void {
    this.text = `${this.name} says something for the ${++this.calls}th time`;
    const body = `{"name":"echo","input":{"text":"${this.text}"}}`;
    this.sentAt = performance.now();
    this.socket.write(`${this.head}Content-Length: ${body.length}\r\n\r\n${body}`);
  }

  private take(bytes: Buffer): void {
    const answer = this.answer ? Buffer.concat([this.answer, bytes]) : bytes;
    const chunked = answer.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
    if (!chunked && answer.toString('latin1', 9, 12) === '200') {
      this.answer = answer;
      return;
    }
    this.answer = undefined;
    note(answer.toString('latin1'), this.text, performance.now() - this.sentAt);
    if (chunked && !stopped) this.send();
    else if (!chunked) throw new Error(`A call was refused: ${String(answer)}`);
  }
}

const callers: Caller[] = [];
let countedFrom = 0;

const AT_ONCE = 32;
for (let at = 0; at < options.sessions; at += AT_ONCE) {
  const some = Array.from({ length: Math.min(AT_ONCE, options.sessions - at) }, (_, i) => `bench-${at + i}`);
  await Promise.all(some.map((sid) => asked('/create', sid, '{"env_name":"echo","split":"train","index":0}')));
  await Promise.all(some.map((sid) => asked('/echo/prompt', sid))); // its setup is over
}

serve(true, {
  /** The calls begin. */
  start: () => {
    for (let i = 0; i < options.sessions; i++) callers.push(new Caller(`bench-${i}`, `session ${i}`));
    return true;
  },
  /** From now on they count. */
  count: () => {
    times = [];
    counting = true;
    countedFrom = performance.now();
    return true;
  },
  result: () => {
    const ms = performance.now() - countedFrom;
    counting = false;
    stopped = true;
    for (const caller of callers) caller.close();
    const sorted = times.sort((a, b) => a - b);
    return {
      calls: sorted.length,
      ms,
      p50: percentile(sorted, 0.5),
      p99: percentile(sorted, 0.99),
      wrong,
      example,
    } satisfies Measured;
  },
});
