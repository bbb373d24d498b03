import { Agent, type IncomingMessage, request } from 'node:http';

export interface Frame {
  readonly event: string;
  readonly data: string;
}

/** The answer to a call, as far as it has come. */
export interface Called {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly frames: readonly Frame[];
  readonly comments: readonly string[];
  readonly taskId: string | undefined;
  /** What the pieces make when they are put together; undefined: it did not end with `end`. */
  readonly result: unknown;
  readonly error: string | undefined;
  /** The body of an answer that is no stream. */
  readonly body: unknown;
}

export interface CallOptions {
  readonly environment?: string;
  readonly taskId?: string | null;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const parse = (status: number, headers: IncomingMessage['headers'], text: string): Called => {
  const streams = headers['content-type']?.startsWith('text/event-stream') ?? false;
  const blocks = streams ? text.split('\n\n').slice(0, -1) : [];
  const frames = blocks.flatMap((block) => {
    const lines = block.split('\n');
    const event = lines.find((line) => line.startsWith('event: '))?.slice(7);
    const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
    return event === undefined ? [] : [{ event, data: data.join('\n') }];
  });
  const last = frames.at(-1);
  const pieces = frames.filter(({ event }) => event === 'chunk' || event === 'end').map(({ data }) => data);
  return {
    ...{ status, headers, frames },
    comments: blocks.filter((block) => block.startsWith(':')),
    taskId: frames.find(({ event }) => event === 'task_id')?.data,
    result: last?.event === 'end' ? JSON.parse(pieces.join('')) : undefined,
    error: last?.event === 'error' ? last.data : undefined,
    body: streams || text === '' ? undefined : JSON.parse(text),
  };
};

/** A call that the test can watch, and leave. */
export class OpenCall {
  /** Resolves when the answer is over, or cut. */
  readonly done: Promise<Called>;
  private text = '';
  private readonly bytes: Buffer[] = [];
  private answer: IncomingMessage | undefined;
  private readonly leaveNow: () => void;
  private readonly waiting = new Set<() => void>();

  constructor(url: string, agent: Agent | undefined, headers: Readonly<Record<string, string>>, body: string) {
    const sent = request(url, { method: 'POST', headers, ...(agent && { agent }) });
    this.leaveNow = () => sent.destroy();
    this.done = new Promise((resolve) => {
      const end = (): void => {
        resolve(this.now);
        for (const wake of this.waiting) wake();
      };
      sent.on('error', end);
      sent.on('response', (answer) => {
        this.answer = answer;
        answer.on('data', (bytes: Buffer) => {
          this.bytes.push(bytes);
          this.text = Buffer.concat(this.bytes).toString('utf8');
          for (const wake of this.waiting) wake();
        });
        answer.on('error', end);
        answer.on('close', end);
      });
    });
    sent.end(body);
  }

  get now(): Called {
    return parse(this.answer?.statusCode ?? 0, this.answer?.headers ?? {}, this.text);
  }

  /** Waits until so much has come; what has come if no more does. */
  until(enough: (called: Called) => boolean): Promise<Called> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!enough(this.now)) return;
        this.waiting.delete(look);
        resolve(this.now);
      };
      this.waiting.add(look);
      void this.done.then(resolve);
      look();
    });
  }

  /** Its task_id has come. */
  begun(): Promise<Called> {
    return this.until(({ taskId }) => taskId !== undefined);
  }

  leave(): void {
    this.leaveNow();
  }
}

/** A client that takes the protocol at its word, and shows what it got. */
export class Trainer {
  readonly base: string;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1_000 });

  constructor(base: string, headers: Readonly<Record<string, string>> = {}) {
    this.base = base;
    this.headers = headers;
  }

  async ask(
    method: 'GET' | 'POST',
    path: string,
    { sid, body, headers = {} }: { sid?: string; body?: unknown; headers?: Readonly<Record<string, string>> } = {},
  ): Promise<{ status: number; body: never; headers: Headers }> {
    const answer = await fetch(`${this.base}${path}`, {
      method,
      headers: { ...this.headers, ...headers, ...(sid !== undefined && { 'X-Session-ID': sid }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as never, headers: answer.headers };
  }

  /** A new session with an episode. */
  async session(body: unknown = { split: 'train', index: 0 }): Promise<string> {
    const { sid } = (await this.ask('POST', '/create_session')).body as { sid: string };
    const { status, body: answer } = await this.ask('POST', '/create', { sid, body });
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(answer)}`);
    return sid;
  }

  open(sid: string, name: string, input: unknown = {}, options: CallOptions = {}): OpenCall {
    const { environment, taskId, key, headers = {} } = options;
    const path = environment === undefined ? '/call' : `/${environment}/call`;
    const all = {
      ...this.headers,
      ...headers,
      'X-Session-ID': sid,
      ...(key !== undefined && { 'Idempotency-Key': key }),
    };
    const body = JSON.stringify({ name, input, ...(taskId !== undefined && { task_id: taskId }) });
    return new OpenCall(`${this.base}${path}`, this.agent, all, body);
  }

  call(sid: string, name: string, input: unknown = {}, options: CallOptions = {}): Promise<Called> {
    return this.open(sid, name, input, options).done;
  }

  close(): void {
    this.agent.destroy();
  }
}
