import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { running } from '../support/running.ts';
import { Followed, type Took } from './followed.ts';

const PROGRAM = join(__dirname, 'replica.js');

export interface Work {
  readonly everyMs: number;
  readonly events: number;
  /** Goes on trying to emit when it may not any more. */
  readonly stubborn?: boolean;
}

export interface Stats {
  readonly reaped: number;
  readonly fenced: number;
  readonly restored: number;
  readonly failures: readonly string[];
  readonly works: Readonly<Record<string, { readonly refused: number; readonly aborted: string | null }>>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type Message =
  | { readonly call: number; readonly value?: unknown; readonly error?: { message: string; code?: string } }
  | { readonly follower: number; readonly took: Took };

interface Call {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** A gateway's jobs in a process of their own: it can be killed, stopped and continued like a real one. */
export class ReplicaProcess {
  /** New at every start, as in the product. */
  readonly name = randomUUID();
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  private readonly calls = new Map<number, Call>();
  private readonly followers: Followed[] = [];
  private asked = 0;

  constructor(url: string, graceMs: number) {
    const options = JSON.stringify({ url, name: this.name, graceMs });
    // setpriv: the kernel kills it when this process dies, even by SIGKILL
    const argv = ['--pdeathsig', 'KILL', process.execPath, '--enable-source-maps', PROGRAM, options];
    this.child = spawn('setpriv', argv, {
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.child.on('message', (message) => this.received(message as Message));
    running.add(this);
    this.exited = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('exit', (code, signal) => {
        running.delete(this);
        for (const { reject } of this.calls.values()) reject(new Error(`The replica has ended: ${code ?? signal}.`));
        this.calls.clear();
        resolve({ code, signal });
      });
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Connected and known to be alive. */
  async ready(): Promise<this> {
    await this.call('ready');
    return this;
  }

  /** Starts a job and resolves to its id. */
  start(work: Work): Promise<string> {
    return this.call('start', work) as Promise<string>;
  }

  /** Resolves when it is attached, which takes as long as the store is away. */
  async follow(id: string, after = 0): Promise<Followed> {
    const followed = new Followed(after);
    const follower = this.followers.push(followed) - 1;
    await this.call('follow', { follower, id, after });
    return followed;
  }

  stats(): Promise<Stats> {
    return this.call('stats') as Promise<Stats>;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  private call(command: string, argument?: unknown): Promise<unknown> {
    const call = this.asked++;
    return new Promise((resolve, reject) => {
      this.calls.set(call, { resolve, reject });
      this.child.send({ call, command, argument }, (error) => {
        if (error && this.calls.delete(call)) reject(error);
      });
    });
  }

  private received(message: Message): void {
    if ('follower' in message) {
      this.followers[message.follower]?.took(message.took);
      return;
    }
    const call = this.calls.get(message.call);
    this.calls.delete(message.call);
    if (message.error) call?.reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
    else call?.resolve(message.value);
  }
}
