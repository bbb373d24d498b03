const SHOWN = 1_024;

export interface LineReader {
  /** Without its end. */
  line(text: string): void;
  /** A line was longer than it may be: how it began and how it ended. */
  tooLong(head: string, tail: string): void;
}

const NEWLINE = 10;

/** Cuts bytes into lines and holds no more than one line of the greatest length. */
export class Lines {
  private readonly most: number;
  private readonly reader: LineReader;
  private parts: Buffer[] = [];
  private length = 0;
  /** The last bytes of a line that is already too long. */
  private tail: Buffer | undefined;

  constructor(most: number, reader: LineReader) {
    this.most = most;
    this.reader = reader;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.take(chunk.subarray(from, at));
      this.flush();
      from = at + 1;
    }
    if (from < chunk.length) this.take(chunk.subarray(from));
  }

  /** What has no end yet is a line, too. */
  end(): void {
    if (this.length > 0) this.flush();
  }

  private take(part: Buffer): void {
    this.length += part.length;
    if (this.tail) {
      this.tail = Buffer.concat([this.tail, part.subarray(-SHOWN)]).subarray(-SHOWN);
      return;
    }
    this.parts.push(part);
    if (this.length <= this.most) return;
    const all = Buffer.concat(this.parts);
    this.parts = [Buffer.from(all.subarray(0, SHOWN))];
    this.tail = Buffer.from(all.subarray(-SHOWN));
  }

  private flush(): void {
    const { parts, tail } = this;
    this.parts = [];
    this.length = 0;
    this.tail = undefined;
    const text = (parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString();
    if (tail) this.reader.tooLong(text, tail.toString());
    else this.reader.line(text.endsWith('\r') ? text.slice(0, -1) : text);
  }
}
