const MAX_PATTERN = 256;

/** A model's name in which `*` stands for any characters, also none. */
export class ModelPattern {
  readonly text: string;
  /** Nothing but the name itself fits. */
  readonly exact: boolean;
  private readonly pieces: readonly string[];

  constructor(text: string) {
    if (text === '' || text.length > MAX_PATTERN) {
      throw new Error(`A pattern of model names has between 1 and ${MAX_PATTERN} characters.`);
    }
    this.text = text;
    this.pieces = text.split('*');
    this.exact = this.pieces.length === 1;
  }

  /** Not a regular expression: a client's name against an operator's pattern must never be slow. */
  matches(name: string): boolean {
    const [first = '', ...rest] = this.pieces;
    const last = rest.pop();
    if (last === undefined) return name === first;
    if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false;
    const end = name.length - last.length;
    let at = first.length;
    for (const piece of rest) {
      const found = name.indexOf(piece, at);
      if (found < 0 || found + piece.length > end) return false;
      at = found + piece.length;
    }
    return true;
  }
}
