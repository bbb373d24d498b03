import { Composer, type Document, LineCounter, type ParsedNode } from 'yaml';
import type { ReadingLimits } from './limits.ts';
import { shallowTokens, TooMuch } from './shallow-tokens.ts';
import { type Fault, SourceDocument } from './source-document.ts';

/** The library makes marks of some of them, and YAML allows none. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

export interface LinePlace {
  readonly line: number;
  readonly column: number;
}

/** The text of a file, taken apart. Whatever it is, nothing is thrown. */
export class SourceText {
  readonly documents: readonly SourceDocument[];
  /** What is wrong with the text as a whole. */
  readonly faults: readonly Fault[];
  /** Nothing at all, not even a comment: a file that is just being written, more likely than one that is meant. */
  readonly blank: boolean;
  private readonly lines = new LineCounter();

  constructor(bytes: Uint8Array, limits: ReadingLimits, json: boolean) {
    const faults: Fault[] = [];
    const documents: SourceDocument[] = [];
    this.documents = documents;
    this.faults = faults;
    const fault = (offset: number, message: string): void => {
      faults.push({ offset, pointer: '', message });
    };
    let text = '';
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(bytes); // takes a byte order mark away
    } catch {
      fault(0, 'The file is not UTF-8.');
    }
    this.blank = faults.length === 0 && text.trim() === '';
    const control = CONTROL.exec(text);
    if (control) {
      this.countLines(text);
      const code = control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
      fault(control.index, `The file holds the control character U+${code}.`);
      return;
    }
    try {
      for (const document of this.compose(text, limits)) {
        if (documents.length >= limits.documentsPerFile) {
          fault(document.range[0], `The file holds more than ${limits.documentsPerFile} documents.`);
          break;
        }
        documents.push(new SourceDocument(document, limits, (offset) => this.placeOf(offset).line));
      }
    } catch (error) {
      if (!(error instanceof TooMuch)) throw error;
      fault(error.offset, error.message);
    }
    if (documents.length === 0 && faults.length === 0 && !holdsNothing(text)) {
      fault(0, 'The file holds no manifest.');
    }
    if (json && faults.length === 0 && documents.every((document) => document.faults.length === 0)) {
      const wrong = jsonFault(text);
      if (wrong) fault(wrong.offset, wrong.message);
    }
  }

  placeOf(offset: number): LinePlace {
    const { line, col } = this.lines.linePos(offset);
    return line < 1 ? { line: 1, column: 1 } : { line, column: Math.max(1, col) };
  }

  private compose(text: string, limits: ReadingLimits): Iterable<Document.Parsed<ParsedNode>> {
    const composer = new Composer({
      schema: 'core',
      merge: false,
      resolveKnownTags: false,
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: 'silent',
    });
    this.lines.addNewLine(0);
    const tokens = shallowTokens(text, limits, this.lines.addNewLine);
    return composer.compose(tokens, false, text.length) as Iterable<Document.Parsed<ParsedNode>>;
  }

  private countLines(text: string): void {
    this.lines.addNewLine(0);
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.lines.addNewLine(at + 1);
  }
}

/** Comments and lines of dashes only. */
const holdsNothing = (text: string): boolean =>
  text.split('\n').every((line) => /^(?:#.*|---|\.\.\.)?$/.test(line.trim()));

/** YAML takes more than JSON is; a file that calls itself JSON is read by others too. */
const jsonFault = (text: string): { readonly offset: number; readonly message: string } | undefined => {
  if (text.trim() === '') return undefined;
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    const offset = Number(/position (\d+)/.exec(message)?.[1] ?? 0);
    return { offset, message: `The file is called .json, and is not JSON: ${message}.` };
  }
};
