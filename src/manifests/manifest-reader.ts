import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { sep } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { Read } from './assembly.ts';
import { type Finding, ofFile } from './finding.ts';
import { Judge, type JudgedFile, type JudgeOptions } from './judgement.ts';
import { type Found, findFiles, type ManifestFile } from './manifest-files.ts';

export interface Reading extends Read {
  readonly found: Found;
  /** Some file was changed only just now, or went away while it was looked for: to be looked at again. */
  readonly unsettled: boolean;
}

interface Remembered {
  readonly digest: string;
  readonly judged: JudgedFile;
}

/** Reads everything, and judges only what has changed since it was read last. */
export class ManifestReader {
  private readonly paths: readonly string[];
  private readonly options: JudgeOptions;
  private readonly judge: Judge;
  private remembered = new Map<string, Remembered>();

  constructor(paths: readonly string[], options: JudgeOptions) {
    this.paths = paths;
    this.options = options;
    this.judge = new Judge(options);
  }

  /** Files that are younger than so many ms may still be in somebody's hands, and are left alone. */
  async read(youngestMs = 0): Promise<Reading> {
    const { limits } = this.options;
    const found = await findFiles(this.paths, limits);
    const findings: Finding[] = [...found.findings];
    const unseen = [...found.unseen];
    const files: JudgedFile[] = [];
    const remembered = new Map<string, Remembered>();
    let documents = 0;
    let unsettled = false;
    for (const file of found.files) {
      const before = this.remembered.get(file.absolute);
      const one = await this.file(file, before, youngestMs);
      if (one === 'unsettled' || one === 'gone') {
        unsettled = true;
        unseen.push(file.absolute);
        // What was known of it stays known, so that a file in the middle of a change causes no finding of its own.
        if (before) {
          remembered.set(file.absolute, before);
          files.push(before.judged);
          documents += before.judged.documents.length;
        }
        continue;
      }
      if (typeof one === 'string') {
        unseen.push(file.absolute);
        findings.push(ofFile(file.path, `The file cannot be read (${one}).`));
        continue;
      }
      documents += one.judged.documents.length;
      if (documents > limits.documents) {
        const message = `There are more than ${limits.documents} documents: this file and all behind it are not read.`;
        findings.push(ofFile(file.path, message));
        break;
      }
      remembered.set(file.absolute, one);
      files.push(one.judged);
    }
    this.remembered = remembered;
    const isUnseen = (absolute: string): boolean =>
      unseen.some((path) => absolute === path || absolute.startsWith(path.endsWith(sep) ? path : `${path}${sep}`));
    return { files, findings, isUnseen, found, unsettled };
  }

  private async file(
    file: ManifestFile,
    before: Remembered | undefined,
    youngestMs: number,
  ): Promise<Remembered | string> {
    let bytes: Uint8Array;
    try {
      const { size, mtimeMs } = await stat(file.absolute);
      const age = Date.now() - mtimeMs;
      if (age >= 0 && age < youngestMs) return 'unsettled';
      // One byte more than allowed says as much as all of them.
      bytes =
        size > this.options.limits.fileBytes
          ? new Uint8Array(this.options.limits.fileBytes + 1)
          : await readFile(file.absolute);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === 'ENOENT' ? 'gone' : (code ?? String(error));
    }
    const digest = createHash('sha256').update(bytes).digest('base64');
    if (before?.digest === digest && before.judged.file.path === file.path) return before;
    await setImmediate(); // a tree of many files holds nobody up for long
    return { digest, judged: this.judge.file(file, bytes) };
  }
}
