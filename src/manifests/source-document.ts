import { type Document, isAlias, isMap, isScalar, isSeq, type Node, type ParsedNode, type YAMLMap } from 'yaml';
import { shown } from './finding.ts';
import type { ReadingLimits } from './limits.ts';
import { partsOf, pathOf, within } from './pointer.ts';

/** What is wrong with the text at an offset. */
export interface Fault {
  readonly offset: number;
  readonly pointer: string;
  readonly message: string;
}

const LONGEST_MESSAGE = 200;

/** The library quotes what it has found, however long it is. */
const short = (text: string): string => (text.length > LONGEST_MESSAGE ? `${text.slice(0, LONGEST_MESSAGE)}...` : text);

/** Ends the reading of a document: what comes behind it would only repeat it. */
class Stop extends Error {}

type PlainObject = Record<string, unknown>;

/**
 * A YAML document as plain values, with the place of each. Not the library's own conversion: that one knows no depth, makes
 * bytes and sets of tags, and compares every key of a map with every other.
 */
export class SourceDocument {
  readonly value: unknown;
  readonly faults: Fault[] = [];
  private readonly document: Document.Parsed<ParsedNode>;
  private readonly limits: ReadingLimits;
  private readonly lineOf: (offset: number) => number;
  /** By pointer: where the key stands, and where the value does. */
  private readonly offsets = new Map<string, { readonly key?: number; readonly value?: number }>();
  private readonly open = new Set<Node>();
  private values = 0;
  private aliases = 0;

  constructor(document: Document.Parsed<ParsedNode>, limits: ReadingLimits, lineOf: (offset: number) => number) {
    this.document = document;
    this.limits = limits;
    this.lineOf = lineOf;
    for (const { message, pos } of document.errors.slice(0, limits.findings)) {
      this.fault(pos[0], '', `${short(message.trim().replace(/\.$/, ''))}.`);
    }
    for (const { code, pos, message } of document.warnings) {
      if (code !== 'TAG_RESOLVE_FAILED') continue;
      const tag = short(message.replace(/^.*?: /, '')).replace('tag:yaml.org,2002:', '!!');
      this.fault(pos[0], '', `The tag ${tag} is not read: write plain values.`);
    }
    this.offsets.set('', { value: document.contents?.range?.[0] ?? document.range[0] });
    if (this.faults.length > 0) return;
    try {
      this.value = this.read(document.contents, '', 1, document.contents?.range?.[0] ?? 0);
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
    }
  }

  /** Where something stands, or the nearest thing around it that does. */
  offsetOf(pointer: string, ofKey = false): number {
    const parts = partsOf(pointer);
    for (let left = parts.length; left >= 0; left--) {
      const found = this.offsets.get(within('', ...parts.slice(0, left)));
      const offset = ofKey || left < parts.length ? (found?.key ?? found?.value) : (found?.value ?? found?.key);
      if (offset !== undefined) return offset;
    }
    return 0;
  }

  private fault(offset: number, pointer: string, message: string): void {
    if (this.faults.length < this.limits.findings) this.faults.push({ offset, pointer, message });
  }

  private read(node: Node | null, pointer: string, depth: number, around: number): unknown {
    const offset = node?.range?.[0] ?? around;
    if (++this.values > this.limits.values) {
      this.fault(offset, pointer, `The document holds more than ${this.limits.values} values.`);
      throw new Stop();
    }
    if (node === null) return null;
    if (isScalar(node)) return node.value;
    if (isAlias(node)) return this.followed(node, pointer, depth, offset);
    if (depth > this.limits.depth) {
      this.fault(offset, pointer, `Maps and lists are nested more than ${this.limits.depth} deep.`);
      throw new Stop();
    }
    this.open.add(node);
    const value = isMap(node) ? this.map(node, pointer, depth) : this.list(node, pointer, depth);
    this.open.delete(node);
    return value;
  }

  private followed(alias: Node, pointer: string, depth: number, offset: number): unknown {
    if (!isAlias(alias)) return undefined;
    if (++this.aliases > this.limits.aliases) {
      this.fault(offset, pointer, `The document has more than ${this.limits.aliases} aliases.`);
      throw new Stop();
    }
    const target = alias.resolve(this.document);
    if (!target) {
      this.fault(offset, pointer, `There is no anchor &${alias.source} above this alias.`);
      return undefined;
    }
    if (this.open.has(target)) {
      this.fault(offset, pointer, `The alias *${alias.source} stands inside what it stands for.`);
      return undefined;
    }
    return this.read(target, pointer, depth, offset);
  }

  private list(node: Node, pointer: string, depth: number): unknown[] {
    if (!isSeq(node)) return [];
    return node.items.map((item, i) => {
      const place = within(pointer, i);
      const offset = (item as Node | null)?.range?.[0];
      if (offset !== undefined) this.offsets.set(place, { value: offset });
      return this.read(item as Node | null, place, depth + 1, offset ?? 0);
    });
  }

  private map(node: YAMLMap, pointer: string, depth: number): PlainObject {
    const object: PlainObject = {};
    const keys = new Map<string, number>();
    for (const { key, value } of node.items as { key: Node | null; value: Node | null }[]) {
      const at = key?.range?.[0] ?? node.range?.[0] ?? 0;
      const name = this.keyName(key, at, pointer);
      if (name === undefined) continue;
      const place = within(pointer, name);
      const before = keys.get(name);
      if (before !== undefined) {
        this.fault(
          at,
          place,
          `The key ${shown(name)} stands here a second time; the first one is in line ${this.lineOf(before)}.`,
        );
        continue;
      }
      keys.set(name, at);
      this.offsets.set(place, { key: at, value: value?.range?.[0] ?? at });
      object[name] = this.read(value, place, depth + 1, at);
    }
    return object;
  }

  private keyName(key: Node | null, offset: number, pointer: string): string | undefined {
    if (!isScalar(key) || key.value === null) {
      this.fault(offset, pointer, `A key ${pointer === '' ? '' : `in ${pathOf(pointer)} `}is not text.`);
      return undefined;
    }
    const name = String(key.value);
    if (name === '<<') {
      this.fault(offset, within(pointer, name), 'Merge keys (<<) are not read: write the keys out, or use an alias.');
      return undefined;
    }
    if (name === '__proto__') {
      this.fault(offset, within(pointer, name), 'The key "__proto__" cannot be used.');
      return undefined;
    }
    return name;
  }
}
