import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { running } from './running.ts';

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
}

/** Passes bytes on to a port of this machine, until it is told to cut. */
export class TcpProxy {
  /** Where new connections go; undefined: they are closed at once. */
  target: number | undefined;
  /** How many connections there have been. */
  accepted = 0;
  private readonly server: Server;
  private readonly pairs = new Set<Pair>();
  private passing: { bytes: number; done: () => void } | undefined;

  private constructor(target: number) {
    this.target = target;
    this.server = createServer((client) => this.take(client));
  }

  static start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    running.add(proxy);
    return new Promise((resolve) => {
      proxy.server.listen(0, '127.0.0.1', () => resolve(proxy));
    });
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Destroys every connection. */
  cut(): void {
    for (const { client, upstream } of this.pairs) {
      client.destroy();
      upstream.destroy();
    }
  }

  /** Lets so many more bytes through to clients, then cuts: in the middle of whatever is being sent. */
  cutAfter(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      this.passing = { bytes, done: resolve };
    });
  }

  async stop(): Promise<void> {
    running.delete(this);
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.cut();
    await closed;
  }

  private take(client: Socket): void {
    this.accepted++;
    if (this.target === undefined) {
      client.destroy();
      return;
    }
    const upstream = connect(this.target, '127.0.0.1');
    const pair = { client, upstream };
    this.pairs.add(pair);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      socket.on('error', () => {});
      socket.on('end', () => other.end());
      socket.on('close', () => {
        this.pairs.delete(pair);
        other.destroySoon();
      });
    }
    client.on('data', (bytes) => upstream.write(bytes));
    upstream.on('data', (bytes) => this.pass(client, bytes));
  }

  private pass(client: Socket, bytes: Buffer): void {
    const { passing } = this;
    if (!passing || bytes.length < passing.bytes) {
      if (passing) passing.bytes -= bytes.length;
      client.write(bytes);
      return;
    }
    this.passing = undefined;
    client.write(bytes.subarray(0, passing.bytes), () => {
      this.cut();
      passing.done();
    });
  }
}
