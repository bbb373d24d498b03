import type { Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Finding, ofFile } from './finding.ts';
import type { ReadingLimits } from './limits.ts';

export interface ManifestFile {
  /** As it was named or found, for people. */
  readonly path: string;
  readonly absolute: string;
  /** The folder that its references must not leave. */
  readonly root: string;
}

export interface Found {
  readonly files: readonly ManifestFile[];
  readonly findings: readonly Finding[];
  /** Of the given paths those that are not there, as they were given. */
  readonly missing: readonly string[];
  /** Whatever lies in these could not be seen, which does not mean that it is gone. */
  readonly unseen: readonly string[];
  /** Every folder whose changes matter, with the names that do; no names: all of them. */
  readonly folders: ReadonlyMap<string, ReadonlySet<string> | undefined>;
}

const MANIFEST = /\.ossa\.(ya?ml|json)$/i;
const SKIPPED: ReadonlySet<string> = new Set(['node_modules', 'dist']);

export const isManifestName = (name: string): boolean => MANIFEST.test(name) && !name.startsWith('.');

/**
 * Names with a dot before them are skipped. In a mounted ConfigMap the files lie in `..data/`, a link to a folder of that
 * kind, and are seen through the links beside it: so each is read once.
 */
export const isSkippedName = (name: string): boolean => name.startsWith('.') || SKIPPED.has(name);

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

class Search {
  readonly files: ManifestFile[] = [];
  readonly findings: Finding[] = [];
  readonly missing: string[] = [];
  readonly unseen: string[] = [];
  readonly folders = new Map<string, ReadonlySet<string> | undefined>();
  private readonly limits: ReadingLimits;
  private readonly realFiles = new Set<string>();
  private readonly realFolders = new Set<string>();
  private full = false;

  constructor(limits: ReadingLimits) {
    this.limits = limits;
  }

  async given(path: string): Promise<void> {
    const absolute = resolve(path);
    const stats = await this.statOf(absolute);
    if (typeof stats === 'string') {
      const gone = stats === 'ENOENT' || stats === 'ENOTDIR';
      if (gone) this.missing.push(path);
      this.unseen.push(absolute);
      this.findings.push(ofFile(path, gone ? `There is no ${path}.` : `${path} cannot be read (${stats}).`));
      await this.awaitIn(dirname(absolute), basename(absolute));
    } else if (stats.isDirectory()) {
      await this.folder(path, absolute, absolute);
    } else if (stats.isFile()) {
      await this.awaitIn(dirname(absolute), basename(absolute));
      this.watched(dirname(absolute), '..data'); // a file of a mounted ConfigMap is a link into it
      await this.file({ path, absolute, root: dirname(absolute) });
    } else {
      this.findings.push(ofFile(path, `${path} is neither a file nor a folder.`));
    }
  }

  /** Something is expected in a folder, or in the nearest one that is there. */
  private async awaitIn(folder: string, name: string): Promise<void> {
    const stats = await this.statOf(folder);
    if (typeof stats === 'string' && dirname(folder) !== folder) {
      await this.awaitIn(dirname(folder), basename(folder));
    } else {
      this.watched(folder, name);
    }
  }

  private watched(folder: string, name?: string): void {
    const names = this.folders.get(folder);
    if (name === undefined || (this.folders.has(folder) && names === undefined)) this.folders.set(folder, undefined);
    else this.folders.set(folder, new Set([...(names ?? []), name]));
  }

  private async statOf(path: string): Promise<Stats | string> {
    try {
      return await stat(path);
    } catch (error) {
      return codeOf(error);
    }
  }

  private async folder(path: string, absolute: string, root: string): Promise<void> {
    const real = await realpath(absolute).catch(() => absolute);
    if (this.realFolders.has(real) || this.full) return; // a link may lead back to where it came from
    if (this.realFolders.size >= this.limits.folders) return this.tooMuch(path, `${this.limits.folders} folders`);
    this.realFolders.add(real);
    this.watched(absolute);
    if (real !== absolute) this.watched(real);
    let names: string[];
    try {
      names = (await readdir(absolute)).filter((name) => !isSkippedName(name)).sort();
    } catch (error) {
      this.unseen.push(absolute);
      this.findings.push(ofFile(path, `The folder ${path} cannot be read (${codeOf(error)}).`));
      return;
    }
    for (const name of names) await this.entry(join(path, name), join(absolute, name), root);
  }

  private async entry(path: string, absolute: string, root: string): Promise<void> {
    const stats = await this.statOf(absolute);
    if (typeof stats === 'string') {
      if (!isManifestName(path)) return;
      // Between the listing and now it went, or it is a link to something that is not there.
      this.unseen.push(absolute);
      this.findings.push(ofFile(path, `The file cannot be read (${stats}).`));
    } else if (stats.isDirectory()) {
      await this.folder(path, absolute, root);
    } else if (stats.isFile() && isManifestName(basename(path))) {
      await this.file({ path, absolute, root });
    }
  }

  private async file(file: ManifestFile): Promise<void> {
    const real = await realpath(file.absolute).catch(() => file.absolute);
    if (this.realFiles.has(real) || this.full) return;
    if (this.files.length >= this.limits.files) return this.tooMuch(file.path, `${this.limits.files} files`);
    this.realFiles.add(real);
    if (dirname(real) !== dirname(file.absolute)) this.watched(dirname(real), basename(real));
    this.files.push(file);
  }

  private tooMuch(path: string, what: string): void {
    this.full = true;
    this.findings.push(ofFile(path, `There are more than ${what}: this one and all behind it are not read.`));
  }
}

/** The manifests among files and in trees of folders, each once, in the order of their names. */
export const findFiles = async (paths: readonly string[], limits: ReadingLimits): Promise<Found> => {
  const search = new Search(limits);
  for (const path of paths) await search.given(path);
  return search;
};
