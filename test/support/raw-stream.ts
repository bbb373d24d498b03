import { connect, type Socket } from 'node:net';

/** A reader of an event stream on a bare socket: it sees every byte, and can be cut at any of them. */
export class RawStream {
  readonly socket: Socket;
  /** The body so far, without the framing of HTTP. */
  body = '';
  head = '';
  /** The chunk that ends a body has come. */
  finished = false;
  private raw = Buffer.alloc(0);

  constructor(port: number, path: string, headers: Readonly<Record<string, string>> = {}, version = '1.1') {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('error', () => {});
    this.socket.on('data', (bytes) => this.take(bytes));
    const lines = Object.entries({ Host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket.write(`GET ${path} HTTP/${version}\r\n${lines.join('')}\r\n`);
  }

  get status(): number {
    return Number(this.head.split(' ')[1] ?? 0);
  }

  get closed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.socket.closed) resolve();
      else this.socket.once('close', () => resolve());
    });
  }

  /** Whole frames. */
  get frames(): string[] {
    return this.body.split('\n\n').slice(0, -1);
  }

  /** Frames that are events of a channel. */
  get events(): string[] {
    return this.frames.filter((frame) => /^event: (?!resync)/.test(frame));
  }

  get lastId(): string | undefined {
    return this.frames.flatMap((frame) => /^id: (.*)$/m.exec(frame)?.[1] ?? []).at(-1);
  }

  close(): void {
    this.socket.destroy();
  }

  private take(bytes: Buffer): void {
    this.raw = Buffer.concat([this.raw, bytes]);
    if (this.head === '') {
      const end = this.raw.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.head = this.raw.subarray(0, end).toString();
      this.raw = this.raw.subarray(end + 4);
    }
    if (!/transfer-encoding: chunked/i.test(this.head)) {
      this.body += this.raw.toString();
      this.raw = Buffer.alloc(0);
      return;
    }
    for (;;) {
      const end = this.raw.indexOf('\r\n');
      if (end < 0) return;
      const size = Number.parseInt(this.raw.subarray(0, end).toString(), 16);
      if (this.raw.length < end + 2 + size + 2) return;
      this.finished = size === 0;
      this.body += this.raw.subarray(end + 2, end + 2 + size).toString();
      this.raw = this.raw.subarray(end + 2 + size + 2);
    }
  }
}
