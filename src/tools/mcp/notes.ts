import { stripVTControlCharacters } from 'node:util';
import { Lines } from './lines.ts';

/** A longer line is cut. */
const LONGEST = 2_000;
/** So many lines are passed on in a second; the rest is counted. */
const PER_SECOND = 50;
const KEPT = 8;
const KEPT_LONGEST = 300;

export interface NotesOptions {
  /** Gets every line that is passed on. */
  readonly note: (line: string) => void;
  readonly conceal: (text: string) => string;
  readonly now?: () => number;
}

/** What a server says beside its answers. It may say anything, and as much as it likes. */
export class Notes {
  private readonly options: Required<NotesOptions>;
  private readonly lines: Lines;
  private readonly kept: string[] = [];
  private second = 0;
  private passed = 0;
  private leftOut = 0;

  constructor(options: NotesOptions) {
    this.options = { now: Date.now, ...options };
    this.lines = new Lines(LONGEST, {
      line: (text) => this.take(text),
      // Without the word at the cut: it might be the first half of a secret.
      tooLong: (head) => this.take(`${head.replace(/\S*$/, '')}...`),
    });
  }

  push(chunk: Buffer): void {
    this.lines.push(chunk);
  }

  end(): void {
    this.lines.end();
    this.tellLeftOut();
  }

  /** The last lines as one text, for an error; empty if there were none. */
  get last(): string {
    return this.kept.join(' | ');
  }

  private take(line: string): void {
    // Colours and other codes of terminals do not belong into a log.
    const bare = stripVTControlCharacters(line).replace(/\p{Cc}/gu, ' ');
    const plain = this.options.conceal(bare).trim();
    if (plain === '') return;
    this.kept.push(plain.slice(0, KEPT_LONGEST));
    if (this.kept.length > KEPT) this.kept.shift();
    const second = Math.floor(this.options.now() / 1_000);
    if (second !== this.second) {
      this.tellLeftOut();
      this.second = second;
      this.passed = 0;
    }
    if (this.passed++ < PER_SECOND) this.options.note(plain);
    else this.leftOut++;
  }

  private tellLeftOut(): void {
    if (this.leftOut > 0) this.options.note(`(${this.leftOut} more lines were left out)`);
    this.leftOut = 0;
  }
}
