import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/redis.ts';
import { running } from '../../support/running.ts';
import { EVERYTHING } from './room.ts';

/** The reference server over HTTP, as a process that can be killed and started again on the same port. */
export class EverythingServer {
  private readonly kind: 'sse' | 'streamableHttp';
  private readonly port: number;
  private child: ChildProcess | undefined;

  private constructor(kind: 'sse' | 'streamableHttp', port: number) {
    this.kind = kind;
    this.port = port;
  }

  static async start(kind: 'sse' | 'streamableHttp'): Promise<EverythingServer> {
    const server = new EverythingServer(kind, await freePort());
    running.add(server);
    await server.up();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/${this.kind === 'sse' ? 'sse' : 'mcp'}`;
  }

  async up(): Promise<void> {
    this.child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, EVERYTHING, this.kind], {
      env: { PATH: process.env.PATH, PORT: String(this.port) },
      stdio: 'ignore',
    });
    const { origin } = new URL(this.url);
    for (;;) {
      // Any answer will do; only a refused connection rejects.
      if (
        await fetch(`${origin}/nothing`).then(
          () => true,
          () => false,
        )
      )
        return;
      await sleep(20);
    }
  }

  async kill(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.kill();
  }
}
