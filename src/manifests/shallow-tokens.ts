import { CST, Lexer, Parser } from 'yaml';
import type { ReadingLimits } from './limits.ts';

/** Where a text is more than may be taken apart; one sentence. */
export class TooMuch extends Error {
  override readonly name = 'TooMuch';
  readonly offset: number;
  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/** What is counted before it is understood is only roughly the depth; documents count exactly. */
const ROUGHLY = 3;

const SCALAR = '\x1f';
const DOCUMENT = '\x02';
const FLOW_END = '\x18';

/**
 * Follows how deep a text goes while it is taken apart. The parser descends once per level, and a stack that is used up
 * inside a regular expression ends the whole process, which nothing can catch: so this is asked before it descends.
 */
class Depth {
  offset = 0;
  private readonly indents: number[] = [];
  private indent = 0;
  private atStart = true;
  private inLine = 0;
  private flow = 0;
  private scalarNext = false;

  /** A lower bound of the depth; the true one is at most about twice as much. */
  after(lexeme: string): number {
    if (this.scalarNext) {
      this.scalarNext = false;
      this.begin();
      this.offset += lexeme.length;
      return this.depth;
    }
    if (lexeme === SCALAR || lexeme === DOCUMENT || lexeme === FLOW_END) {
      this.scalarNext = lexeme === SCALAR;
      return this.depth;
    }
    this.offset += lexeme.length;
    const type = CST.tokenType(lexeme);
    if (type === 'newline') {
      this.atStart = true;
      this.indent = 0;
      this.inLine = 0;
    } else if (type === 'space') {
      if (this.atStart) this.indent = lexeme.length;
    } else {
      this.begin();
      if (type === 'flow-map-start' || type === 'flow-seq-start') this.flow++;
      else if (type === 'flow-map-end' || type === 'flow-seq-end') this.flow = Math.max(0, this.flow - 1);
      else if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') this.inLine++;
    }
    return this.depth;
  }

  private get depth(): number {
    return this.indents.length + this.inLine + this.flow;
  }

  /** The first thing in a line decides how far in the line is. */
  private begin(): void {
    if (!this.atStart) return;
    this.atStart = false;
    if (this.flow > 0) return;
    while (this.indents.length > 0 && (this.indents.at(-1) as number) >= this.indent) this.indents.pop();
    this.indents.push(this.indent);
  }
}

/** The documents of a text as the parser sees them. Throws a `TooMuch`. */
export function* shallowTokens(text: string, limits: ReadingLimits, newLine: (offset: number) => void) {
  const parser = new Parser(newLine);
  const depth = new Depth();
  let tokens = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (depth.after(lexeme) > limits.depth * ROUGHLY) {
      throw new TooMuch(depth.offset, `Maps and lists are nested more than ${limits.depth} deep.`);
    }
    if (++tokens > limits.tokens) throw new TooMuch(depth.offset, 'The file holds too many words and signs.');
    yield* parser.next(lexeme);
  }
  yield* parser.end();
}
