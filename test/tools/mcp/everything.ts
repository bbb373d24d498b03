import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { TcpProxy } from '../../support/proxy.ts';
import { freePort } from '../../support/redis.ts';
import { running } from '../../support/running.ts';
import { EVERYTHING } from './room.ts';

/**
 * The reference server over HTTP, as a process that can be killed and started again. It is reached through a proxy, so
 * that its address stays ours while it is down: somebody else might take the port of a server that was killed.
 */
export class EverythingServer {
  readonly line: TcpProxy;
  private readonly kind: 'sse' | 'streamableHttp';
  private child: ChildProcess | undefined;

  private constructor(kind: 'sse' | 'streamableHttp', line: TcpProxy) {
    this.kind = kind;
    this.line = line;
  }

  static async start(kind: 'sse' | 'streamableHttp'): Promise<EverythingServer> {
    const server = new EverythingServer(kind, await TcpProxy.start(0));
    running.add(server);
    await server.up();
    return server;
  }

  get url(): string {
    return `${this.line.url}/${this.kind === 'sse' ? 'sse' : 'mcp'}`;
  }

  async up(): Promise<void> {
    let port = 0;
    do {
      port = await freePort();
      this.child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, EVERYTHING, this.kind], {
        env: { PATH: process.env.PATH, PORT: String(port) },
        stdio: 'ignore',
      });
    } while (!(await this.listens(port)));
    this.line.target = port;
  }

  async kill(): Promise<void> {
    const { child } = this;
    this.line.target = undefined;
    if (!child || hasEnded(child)) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.kill();
    await this.line.stop();
  }

  /** False if it has ended: its port was taken in the meantime. */
  private async listens(port: number): Promise<boolean> {
    for (;;) {
      // Any answer will do; only a refused connection rejects.
      const answered = await fetch(`http://127.0.0.1:${port}/nothing`).then(
        () => true,
        () => false,
      );
      if (this.child && hasEnded(this.child)) return false;
      if (answered) return true;
      await sleep(20);
    }
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null;
