import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import type { JsonObject } from '../../tools/tool.ts';
import { EnvironmentError, invalidIndex, invalidSplit, MAX_LISTED, notListed, type Split } from '../environment.ts';
import { isObject } from '../plain-data.ts';
import { splitNamed } from '../split.ts';
import { LineIndex } from './line-index.ts';

export interface JsonlLimits {
  /** A longer list is not given as a whole. */
  readonly maxListed: number;
  readonly maxTaskBytes: number;
  /** Of all tasks that are asked for at once. */
  readonly maxBytes: number;
}

const MB = 1024 * 1024;
const LIMITS: JsonlLimits = { maxListed: MAX_LISTED, maxTaskBytes: 16 * MB, maxBytes: 64 * MB };

/** So much is read at a time, or one task. */
const PIECE_BYTES = MB;

/** One file with a task on each line. Lines are found once, and again when the file has changed. */
class JsonlFile {
  private readonly path: string;
  private readonly limits: JsonlLimits;
  private known: { readonly mark: string; readonly index: Promise<LineIndex> } | undefined;

  constructor(path: string, limits: JsonlLimits) {
    this.path = path;
    this.limits = limits;
  }

  count(): Promise<number> {
    return this.read(async (_, index) => index.count);
  }

  all(): Promise<readonly JsonObject[]> {
    return this.read((file, index) => {
      const { start, end } = index.bytes(0, index.count);
      if (index.count > this.limits.maxListed || end - start > this.limits.maxBytes) throw notListed();
      return this.tasks(file, index, 0, index.count);
    });
  }

  one(at: number): Promise<JsonObject> {
    return this.read(async (file, index) => {
      if (at >= index.count) throw invalidIndex();
      return (await this.tasks(file, index, at, at + 1))[0] as JsonObject;
    });
  }

  some(first: number, last: number): Promise<readonly JsonObject[]> {
    return this.read((file, index) => this.tasks(file, index, first, Math.min(last, index.count)));
  }

  private async tasks(file: FileHandle, index: LineIndex, first: number, last: number): Promise<JsonObject[]> {
    const { start, end } = index.bytes(first, Math.max(first, last));
    if (last - first > 1 && end - start > this.limits.maxBytes) {
      throw new EnvironmentError('unsupported', 'These tasks are too large to be given at once: ask for fewer.');
    }
    const found: JsonObject[] = [];
    for (let from = first; from < last; ) {
      let to = from + 1;
      while (to < last && this.size(index, from, to + 1) <= PIECE_BYTES) to++;
      if (to === from + 1 && this.size(index, from, to) > this.limits.maxTaskBytes) {
        throw this.wrong(index, from, `is longer than ${this.limits.maxTaskBytes} bytes`);
      }
      // Not as arguments of one push: of small tasks there are too many for that.
      for (const task of await this.piece(file, index, from, to)) found.push(task);
      from = to;
    }
    return found;
  }

  private async piece(file: FileHandle, index: LineIndex, from: number, to: number): Promise<JsonObject[]> {
    const { start, end } = index.bytes(from, to);
    const bytes = Buffer.alloc(end - start, ' ');
    for (let read = 0; read < bytes.length; ) {
      const { bytesRead } = await file.read(bytes, read, bytes.length - read, start + read);
      if (bytesRead === 0) break; // it was cut meanwhile: what is missing is not JSON
      read += bytesRead;
    }
    return Array.from({ length: to - from }, (_, i) => {
      const { start: at, end: until } = index.bytes(from + i, from + i + 1);
      return this.parse(bytes.toString('utf8', at - start, until - start), index, from + i);
    });
  }

  private parse(line: string, index: LineIndex, at: number): JsonObject {
    let task: unknown;
    try {
      task = JSON.parse(line);
    } catch (error) {
      // Without the parser's words: they quote the file.
      throw this.wrong(index, at, 'is not JSON', error);
    }
    if (!isObject(task)) throw this.wrong(index, at, 'is not a JSON object');
    return task;
  }

  private wrong(index: LineIndex, at: number, what: string, cause?: unknown): EnvironmentError {
    // Only the name of the file: where it lies is nobody's business who asks for tasks.
    const place = `Line ${index.lineNumber(at)} of ${basename(this.path)}`;
    return new EnvironmentError('failed', `${place} ${what}.`, cause);
  }

  private size(index: LineIndex, from: number, to: number): number {
    const { start, end } = index.bytes(from, to);
    return end - start;
  }

  private async read<T>(use: (file: FileHandle, index: LineIndex) => Promise<T>): Promise<T> {
    const file = await open(this.path).catch((error: NodeJS.ErrnoException) => {
      throw new EnvironmentError('unavailable', `${basename(this.path)} cannot be read (${error.code}).`, error);
    });
    try {
      return await use(file, await this.indexOf(file));
    } finally {
      await file.close();
    }
  }

  private async indexOf(file: FileHandle): Promise<LineIndex> {
    const { ino, size, mtimeNs } = await file.stat({ bigint: true });
    const mark = `${ino} ${size} ${mtimeNs}`;
    if (this.known?.mark !== mark) {
      const index = LineIndex.read(file, Number(size));
      this.known = { mark, index };
      index.catch(() => {
        if (this.known?.index === index) this.known = undefined;
      });
    }
    return this.known.index;
  }
}

/** Tasks in files of JSON lines, one file per split. Files may be large: only what is asked for is read. */
export class JsonlTasks {
  readonly splits: readonly Split[];
  private readonly files: ReadonlyMap<string, JsonlFile>;

  /** Files by split. */
  constructor(files: Readonly<Record<string, string>>, limits: Partial<JsonlLimits> = {}) {
    const entries = Object.entries(files);
    this.splits = entries.map(([name]) => splitNamed(name));
    this.files = new Map(entries.map(([name, path]) => [name, new JsonlFile(path, { ...LIMITS, ...limits })]));
  }

  async all(split: string): Promise<readonly JsonObject[]> {
    return this.file(split).all();
  }

  async count(split: string): Promise<number> {
    return this.file(split).count();
  }

  async task(split: string, index: number): Promise<JsonObject> {
    return this.file(split).one(index);
  }

  async range(split: string, start: number, stop: number): Promise<readonly JsonObject[]> {
    return this.file(split).some(start, stop);
  }

  private file(split: string): JsonlFile {
    const file = this.files.get(split);
    if (!file) throw invalidSplit();
    return file;
  }
}
