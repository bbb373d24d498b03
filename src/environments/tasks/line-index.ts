import type { FileHandle } from 'node:fs/promises';

const LF = 10;
const SPACES: ReadonlySet<number> = new Set([9, 13, 32]);
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const CHUNK_BYTES = 1024 * 1024;

/** Where each line of a file begins; those with nothing on them do not count. Eight bytes per line are held, no more. */
export class LineIndex {
  private readonly starts: number[] = [];
  /** The numbers of lines with nothing on them, from 1. */
  private readonly blanks: number[] = [];
  private readonly size: number;

  private constructor(size: number) {
    this.size = size;
  }

  /** Reads that many bytes of the file once, in pieces. */
  static async read(file: FileHandle, size: number): Promise<LineIndex> {
    const index = new LineIndex(size);
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(size, 1)));
    let start = 0;
    let line = 1;
    let blank = true;
    const end = (next: number): void => {
      if (blank) index.blanks.push(line);
      else index.starts.push(start);
      start = next;
      blank = true;
      line++;
    };
    for (let offset = 0; offset < size; ) {
      const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, size - offset), offset);
      if (bytesRead === 0) break;
      const bytes = chunk.subarray(0, bytesRead);
      let at = 0;
      if (offset === 0 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) {
        at = 3;
        start = 3;
      }
      while (at < bytesRead) {
        const found = bytes.indexOf(LF, at);
        const stop = found < 0 ? bytesRead : found;
        for (; blank && at < stop; at++) blank = SPACES.has(bytes[at] as number);
        at = stop + 1;
        if (found >= 0) end(offset + at);
      }
      offset += bytesRead;
    }
    if (start < size) end(size);
    return index;
  }

  get count(): number {
    return this.starts.length;
  }

  /** Where the lines from `first` up to `last`, which is left out, are; what follows the last of them may be blank. */
  bytes(first: number, last: number): { readonly start: number; readonly end: number } {
    const at = (index: number): number => this.starts[index] ?? this.size;
    return { start: at(first), end: at(last) };
  }

  /** As an editor counts. */
  lineNumber(index: number): number {
    let line = index + 1;
    for (const blank of this.blanks) {
      if (blank > line) break;
      line++;
    }
    return line;
  }
}
