import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { isSettingPath, SETTING_PATHS, type SettingPath } from './settings.ts';
import type { Given, Source } from './source.ts';
import { didYouMean } from './suggestion.ts';

export const DEFAULT_FILE = 'sluice.yaml';

const SECTIONS: ReadonlySet<string> = new Set(
  SETTING_PATHS.flatMap((path) => {
    const parts = path.split('.');
    return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('.'));
  }),
);

/** One YAML document, walked along the schema, with the place of everything in it. */
class SettingsFile {
  readonly given = new Map<SettingPath, Given>();
  readonly problems: string[] = [];
  private readonly name: string;
  private readonly lines = new LineCounter();
  private readonly document: Document.Parsed;

  constructor(name: string, content: string) {
    this.name = name;
    this.document = parseDocument(content, { lineCounter: this.lines, prettyErrors: false });
    const { errors, contents } = this.document;
    for (const { message, pos } of errors) this.problems.push(`${message} (${this.at(pos[0])}).`);
    if (errors.length > 0 || contents === null) return;
    this.section('', contents);
  }

  private at(offset: number | undefined): string {
    const { line, col } = this.lines.linePos(offset ?? 0);
    return `${this.name}, line ${line}, column ${col}`;
  }

  private section(path: string, written: Node): void {
    const node = this.followed(written);
    if (isScalar(node) && node.value === null) return; // a heading whose settings are all commented out
    if (!isMap(node)) {
      this.problems.push(`${path || 'The file'} must be settings by name (${this.at(written.range?.[0])}).`);
      return;
    }
    for (const { key, value } of node.items) {
      const name = String(isScalar(key) ? key.value : key);
      this.entry(path === '' ? name : `${path}.${name}`, key as Node, value as Node | null);
    }
  }

  private entry(path: string, key: Node, value: Node | null): void {
    if (SECTIONS.has(path)) {
      if (value) this.section(path, value);
    } else if (isSettingPath(path)) {
      const node = value && this.followed(value);
      const items = isSeq(node) ? node.items : [];
      this.given.set(path, {
        value: node?.toJS(this.document) ?? null,
        where: this.at((value ?? key).range?.[0]),
        whereItem: (i) => this.at(((items[i] as Node | undefined) ?? value ?? key).range?.[0]),
      });
    } else {
      const hint = didYouMean(path, [...SETTING_PATHS, ...SECTIONS]);
      this.problems.push(`There is no setting ${path} (${this.at(key.range?.[0])})${hint || '.'}`);
    }
  }

  private followed(node: Node): Node {
    return isAlias(node) ? (node.resolve(this.document) ?? node) : node;
  }
}

const NOTHING: Source = { given: new Map(), problems: [] };

/** A file that was named must be there; the one that is merely looked for need not. */
export const readFileSource = (directory: string, named: { path: string; by: string } | undefined): Source => {
  const name = named?.path ?? DEFAULT_FILE;
  let content: string;
  try {
    content = readFileSync(resolve(directory, name), 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!named && code === 'ENOENT') return NOTHING;
    const reason = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`;
    return { ...NOTHING, problems: [`The settings file ${name}${named ? ` (${named.by})` : ''} ${reason}.`] };
  }
  return new SettingsFile(name, content);
};
